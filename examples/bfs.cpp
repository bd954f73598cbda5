// Breadth-first search: active messages set a vertex's distance and go on to its neighbours.
//
// The whole search is one message to the source and one barrier, because a barrier also waits for the
// messages that handlers send. There are no levels: a vertex may first hear of a long path and then of a
// shorter one. The least distance stays.
#include <cstdint>
#include <iostream>
#include <vector>

#include <esker/esker.hpp>
#include <esker/lane.hpp>

namespace {

constexpr std::uint32_t kSide = 160;
constexpr std::uint32_t kVertices = kSide * kSide;  // on all PEs together
constexpr std::uint32_t kDegree = 5;
constexpr std::uint32_t kFar = ~std::uint32_t{0};
constexpr std::uint32_t kSource = 0;

/// The graph: a grid that wraps around, and a random edge out of each vertex.
ESKER_HD std::uint32_t neighbour(std::uint32_t v, std::uint32_t i) {
  const std::uint32_t x = v % kSide, row = v - x;
  if (i == 0) return row + (x + 1) % kSide;
  if (i == 1) return row + (x + kSide - 1) % kSide;
  if (i == 2) return (v + kSide) % kVertices;
  if (i == 3) return (v + kVertices - kSide) % kVertices;
  return static_cast<std::uint32_t>(((v + 1) * 0x9e3779b97f4a7c15) >> 32) % kVertices;
}

/// The handler, which runs on the vertex's PE. The target is the vertex's distance, the argument a candidate
/// for it. Vertex v is element v / n_pes on PE v % n_pes.
struct Visit {
  using Self = esker::Handler<std::uint32_t, std::uint32_t>;
  esker::SymmetricArray<std::uint32_t> distances;
  esker::SymmetricArray<std::uint32_t> edges;  // kDegree of each vertex

  /// While a call runs, no other call runs for a target in the same 8 bytes. Without this line it would be
  /// the same 4096 bytes, and on a GPU fewer calls would run side by side.
  static constexpr std::uint64_t kOwnershipBytes = 8;

  /// Most messages bring no shorter path and need no call. Esker may ask while another call writes to the
  /// same vertex, hence the atomic load here and the atomic store below.
  ESKER_HD bool is_needless(const std::uint32_t& distance, const std::uint32_t& candidate) const {
    return reinterpret_cast<const esker::DeviceAtomic<std::uint32_t>&>(distance).load_relaxed() <= candidate;
  }

  ESKER_HD void operator()(esker::HandlerContext& context, std::uint32_t& distance,
                           const std::uint32_t& candidate, Self self) const {
    if (distance <= candidate) return;  // it may have fallen since is_needless() was asked
    reinterpret_cast<esker::DeviceAtomic<std::uint32_t>&>(distance).store_relaxed(candidate);
    const std::uint64_t vertex = static_cast<std::uint64_t>(&distance - distances.data());
    for (std::uint32_t i = 0; i < kDegree; ++i) {
      const std::uint32_t to = edges[vertex * kDegree + i];
      shmem_am(context, self, &distances[to / context.n_pes()], candidate + 1, to % context.n_pes());
    }
  }
};

/// The textbook's search with one queue.
std::vector<std::uint32_t> serial_search() {
  std::vector<std::uint32_t> distances(kVertices, kFar), queue{kSource};
  distances[kSource] = 0;
  for (std::size_t next = 0; next < queue.size(); ++next) {
    for (std::uint32_t i = 0; i < kDegree; ++i) {
      const std::uint32_t to = neighbour(queue[next], i);
      if (distances[to] != kFar) continue;
      distances[to] = distances[queue[next]] + 1;
      queue.push_back(to);
    }
  }
  return distances;
}

}  // namespace

int main(int argc, char** argv) {
  esker::Runtime rt(argc, argv);
  const std::uint32_t me = rt.pe(), n_pes = rt.n_pes();
  // An allocation has the same size on every PE: enough for the PE with the most vertices.
  const std::uint64_t most = (kVertices + n_pes - 1) / n_pes;
  const std::uint64_t mine = me < kVertices ? (kVertices - me + n_pes - 1) / n_pes : 0;
  const auto distances = rt.heap().allocate<std::uint32_t>(most);
  const auto edges = rt.heap().allocate<std::uint32_t>(most * kDegree);
  const auto visit = rt.register_handler<std::uint32_t, std::uint32_t>("visit", Visit{distances, edges});

  // A kernel that takes a Lane sends nothing. It fills this PE's part of the graph.
  rt.launch(mine, [=] ESKER_LAMBDA(esker::Lane lane) {
    const std::uint64_t v = lane.global_id();
    distances[v] = kFar;
    for (std::uint32_t i = 0; i < kDegree; ++i)
      edges[v * kDegree + i] = neighbour(static_cast<std::uint32_t>(v * n_pes + me), i);
  });
  rt.barrier_all();  // no visit before every PE has its part

  if (me == kSource % n_pes) {
    rt.launch(1, [=] ESKER_LAMBDA(esker::WorkItem item) {
      shmem_am(item, visit, &distances[kSource / n_pes], 0, item.pe());
    });
  }
  rt.barrier_all();  // every message is applied, and so is what handlers sent: the search is over

  const std::vector<std::uint32_t> expected = serial_search();
  const std::vector<std::uint32_t> found = rt.heap().read(distances);
  std::uint64_t wrong = 0, farthest = 0;
  for (std::uint64_t v = 0; v < mine; ++v) {
    wrong += found[v] != expected[v * n_pes + me] ? 1 : 0;
    if (found[v] != kFar && found[v] > farthest) farthest = found[v];
  }
  rt.all_reduce({&wrong, 1}, esker::Reduction::kSum);
  rt.all_reduce({&farthest, 1}, esker::Reduction::kMax);
  if (me == 0) {
    std::cout << "bfs: " << kVertices << " vertices on " << n_pes << " PEs, the farthest " << farthest
              << " steps from vertex " << kSource
              << (wrong == 0 ? ": every distance verified\n" : ": WRONG\n");
  }
  return wrong == 0 ? 0 : 1;
}
