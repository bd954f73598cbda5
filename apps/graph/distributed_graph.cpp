// Two passes over the edges, counting and storing, then each PE tidies its vertices' edges.
#include "distributed_graph.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "../harness/json.hpp"
#include "../harness/team.hpp"
#include "edge_readers.hpp"
#include "prefix_sums.hpp"

namespace graph {
namespace {

/// An edge on its way from the PE that read it.
struct Staged {
  Location from;
  Location to;
  double weight;
};

struct CountDegrees {
  esker::SymmetricArray<Staged> staged;
  esker::SymmetricArray<std::uint64_t> degree;
  bool undirected;
  ESKER_HD void operator()(esker::WorkItem item) const {
    const Staged edge = staged[item.global_id()];
    esker::shmem_inc(item, &degree[edge.from.index()], edge.from.pe());
    if (undirected) esker::shmem_inc(item, &degree[edge.to.index()], edge.to.pe());
  }
};

/// Runs at the owner of the vertex, whose cursor it is; no other vertex has that cursor.
struct StoreEdge {
  static constexpr std::uint64_t kOwnershipBytes = sizeof(std::uint64_t);
  esker::SymmetricArray<Edge> edges;
  ESKER_HD void operator()(esker::HandlerContext& /*context*/, std::uint64_t& cursor,
                           const Edge& edge) const {
    edges[cursor++] = edge;
  }
};

struct SendEdges {
  esker::SymmetricArray<Staged> staged;
  esker::SymmetricArray<std::uint64_t> cursor;
  esker::Handler<std::uint64_t, Edge> store;
  bool undirected;
  ESKER_HD void operator()(esker::WorkItem item) const {
    const Staged edge = staged[item.global_id()];
    esker::shmem_am(item, store, &cursor[edge.from.index()], {edge.to, edge.weight}, edge.from.pe());
    if (!undirected) return;
    esker::shmem_am(item, store, &cursor[edge.to.index()], {edge.from, edge.weight}, edge.to.pe());
  }
};

/// Brings this PE's part of the edges, loops left out, onto the heap chunk by chunk, and runs a kernel over
/// each chunk. Collective at the end: every message is applied.
template <class Kernel>
void for_each_chunk(esker::Runtime& rt, const EdgeSource& source, std::uint32_t readers,
                    const inputs::VertexPartition& partition, esker::SymmetricArray<Staged> staged,
                    const Kernel& kernel, const char* name) {
  std::vector<Staged> chunk;
  chunk.reserve(staged.size());
  const auto send = [&] {
    if (chunk.empty()) return;
    rt.heap().write(staged, 0, std::span<const Staged>(chunk));
    rt.launch(chunk.size(), kernel, name);
    rt.quiet();  // the next chunk is written over it
    chunk.clear();
  };
  const auto location = [&](std::uint64_t vertex) {
    return Location{partition.owner(vertex), partition.local_index(vertex)};
  };
  const auto convert = [&](const inputs::Edge& edge) -> std::optional<Staged> {
    if (edge.from == edge.to) return std::nullopt;
    return Staged{location(edge.from), location(edge.to), edge.weight};
  };
  for_each_block<Staged>(source, {rt.pe(), rt.n_pes()}, readers, convert, [&](std::span<const Staged> block) {
    while (!block.empty()) {
      const auto some = block.first(std::min(block.size(), staged.size() - chunk.size()));
      chunk.insert(chunk.end(), some.begin(), some.end());
      if (chunk.size() == staged.size()) send();
      block = block.subspan(some.size());
    }
  });
  send();
  rt.barrier_all();
}

/// Sorts the edges of one vertex and leaves one to each other end, the lightest. Returns how many are left.
std::uint64_t tidy(std::span<Edge> edges) {
  std::sort(edges.begin(), edges.end(),
            [](const Edge& a, const Edge& b) { return std::tie(a.to, a.weight) < std::tie(b.to, b.weight); });
  const auto end =
      std::unique(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.to == b.to; });
  return static_cast<std::uint64_t>(end - edges.begin());
}

/// What is left of this PE's edges.
struct Tidied {
  std::uint64_t edges = 0;
  std::uint64_t cut = 0;
};

/// Tidies vertex after vertex, some `chunk_edges` at a time, and closes the gaps. `first` changes with them.
Tidied tidy_all(esker::Runtime& rt, esker::SymmetricArray<Edge> edges, std::vector<std::uint64_t>& first,
                std::uint64_t chunk_edges) {
  const std::uint32_t threads = rt.host_threads();
  Tidied left;
  std::vector<Edge> chunk;
  std::vector<std::uint64_t> stay;  // edges of the chunk's vertices
  for (std::size_t v = 0; v + 1 < first.size();) {
    const std::uint64_t begin = first[v];  // of the chunk as it came; first[v] is not yet changed
    std::size_t end_vertex = v + 1;
    while (end_vertex + 1 < first.size() && first[end_vertex + 1] - begin <= chunk_edges) ++end_vertex;
    chunk.resize(first[end_vertex] - begin);
    rt.heap().read(edges, begin, std::span(chunk));
    const auto own = [&](std::size_t vertex) {
      return std::span(chunk).subspan(first[vertex] - begin, first[vertex + 1] - first[vertex]);
    };
    stay.resize(end_vertex - v);
    harness::run_team(threads, [&](std::uint32_t t) {
      const inputs::Range mine = inputs::range_of(stay.size(), {t, threads});
      for (std::uint64_t i = mine.begin; i < mine.end; ++i) stay[i] = tidy(own(v + i));
    });
    std::uint64_t kept = 0;
    for (std::uint64_t i = 0, came = begin; v < end_vertex; ++i, ++v) {
      const auto edge = chunk.begin() + static_cast<std::ptrdiff_t>(came - begin);
      came = first[v + 1];
      for (std::uint64_t e = 0; e < stay[i]; ++e, ++kept) {
        const Edge one = edge[static_cast<std::ptrdiff_t>(e)];
        left.cut += one.to.pe() != rt.pe() ? 1 : 0;
        chunk[kept] = one;
      }
      first[v] = left.edges + kept - stay[i];
    }
    // first[v] still says where the next chunk begins.
    rt.heap().write(edges, left.edges, std::span<const Edge>(chunk).first(kept));
    left.edges += kept;
  }
  first.back() = left.edges;
  return left;
}

}  // namespace

DistributedGraph load(esker::Runtime& rt, const EdgeSource& source, inputs::VertexPartition partition,
                      bool undirected, std::uint64_t chunk_edges) {
  const std::uint64_t my_vertices = partition.count(rt.pe());
  std::array<std::uint64_t, 1> most_vertices{my_vertices};
  rt.all_reduce(std::span<std::uint64_t>(most_vertices), esker::Reduction::kMax);
  const std::uint32_t readers = source.readers(rt);

  const auto staged = rt.heap().allocate<Staged>(chunk_edges);
  const auto cursor = rt.heap().allocate<std::uint64_t>(most_vertices[0] + 1);
  for_each_chunk(rt, source, readers, partition, staged, CountDegrees{staged, cursor, undirected},
                 "graph-count");

  std::vector<std::uint64_t> first = read_prefix_sums(rt, cursor, my_vertices);
  std::array<std::uint64_t, 1> most_edges{first.back()};
  rt.all_reduce(std::span<std::uint64_t>(most_edges), esker::Reduction::kMax);
  rt.heap().write(cursor, 0, std::span<const std::uint64_t>(first));
  const auto edges = rt.heap().allocate<Edge>(std::max<std::uint64_t>(1, most_edges[0]));
  const auto store = rt.register_handler<std::uint64_t, Edge>("graph-store-edge", StoreEdge{edges});
  for_each_chunk(rt, source, readers, partition, staged, SendEdges{staged, cursor, store, undirected},
                 "graph-store");
  rt.heap().free(staged);

  const Tidied mine = tidy_all(rt, edges, first, chunk_edges);
  rt.heap().write(cursor, 0, std::span<const std::uint64_t>(first));
  std::array<std::uint64_t, 2> all{mine.edges, mine.cut};
  rt.all_reduce(std::span<std::uint64_t>(all), esker::Reduction::kSum);
  const double cut = all[0] == 0 ? 0 : static_cast<double>(all[1]) / static_cast<double>(all[0]);
  return {std::move(partition), cursor, edges, my_vertices, most_vertices[0], mine.edges, all[0], cut};
}

nlohmann::json facts(const Options& options, const DistributedGraph& graph) {
  return {{"graph", options.graph},
          {"scale", options.scale},
          {"vertices", graph.partition.vertices()},
          {"edges", graph.all_edges},
          {"undirected", options.undirected},
          {"partition", options.partition},
          {"cut_fraction", graph.cut}};
}

}  // namespace graph
