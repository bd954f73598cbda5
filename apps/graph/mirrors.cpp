// Each PE lists where its vertices' edges lead, the PEs tell each other how many mirrors that makes, and each
// edge tells its other end which of them is its vertex's.
#include "mirrors.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "edge_slots.hpp"
#include "edge_traversal.hpp"
#include "prefix_sums.hpp"

namespace graph {
namespace {

/// A lane for each PE.
struct PutToEach {
  esker::SymmetricArray<std::uint64_t> values;
  esker::SymmetricArray<std::uint64_t> from_each;
  ESKER_HD void operator()(esker::WorkItem item) const {
    const auto pe = static_cast<std::uint32_t>(item.global_id());
    esker::shmem_put(item, &from_each[item.pe()], values[pe], pe);
  }
};

/// Runs at the owner of the vertex, whose cursor it is; no other vertex has that cursor.
struct StoreMirror {
  static constexpr std::uint64_t kOwnershipBytes = sizeof(std::uint64_t);
  esker::SymmetricArray<std::uint32_t> mirror_of;
  ESKER_HD void operator()(esker::HandlerContext& /*context*/, std::uint64_t& cursor,
                           const std::uint64_t& mirror) const {
    mirror_of[cursor++] = static_cast<std::uint32_t>(mirror);
  }
};

/// A lane tells its edges' other ends which mirror there is of the vertices that they leave.
struct TellMirrors {
  EdgeTraversal traversal;
  esker::SymmetricArray<Edge> edges;
  esker::SymmetricArray<std::uint64_t> first;
  esker::SymmetricArray<Location> locations;
  esker::SymmetricArray<std::uint64_t> cursor;
  esker::Handler<std::uint64_t, std::uint64_t> store;
  ESKER_HD void operator()(esker::WorkItem item) const {
    EdgeTraversal::State at = traversal.begin(item.global_id());
    std::uint64_t mirror = 0;
    for (;;) {
      if (!traversal.step(at)) {
        if (!traversal.next_row(at)) return;
        mirror = first[at.vertex];
      }
      const Location to = edges[at.edge].to;
      while (locations[mirror].pe() != to.pe()) ++mirror;  // both are in order of PEs
      esker::shmem_am(item, store, &cursor[to.index()], locations[mirror].index(), to.pe());
    }
  }
};

/// Of each PE, what it has put here for this one.
std::vector<std::uint64_t> all_to_all(esker::Runtime& rt, const std::vector<std::uint64_t>& for_each) {
  const auto values = rt.heap().allocate<std::uint64_t>(rt.n_pes());
  const auto from_each = rt.heap().allocate<std::uint64_t>(rt.n_pes());
  rt.heap().write(values, 0, std::span(for_each));
  rt.launch(rt.n_pes(), PutToEach{values, from_each}, "graph-all-to-all");
  rt.barrier_all();
  std::vector<std::uint64_t> came = rt.heap().read(from_each);
  rt.heap().free(from_each);
  rt.heap().free(values);
  return came;
}

/// Calls visit(edges) for each vertex of this PE, in order; some kChunkEdges are copied at a time.
template <class Visit>
void for_each_row(esker::Runtime& rt, const DistributedGraph& graph, const Visit& visit) {
  const std::vector<std::uint64_t> first = read_first(rt, graph.first, graph.my_vertices);
  std::vector<Edge> chunk;
  for (std::uint64_t v = 0; v < graph.my_vertices;) {
    const std::uint64_t begin = first[v];
    std::uint64_t end = v + 1;
    while (end < graph.my_vertices && first[end + 1] - begin <= kChunkEdges) ++end;
    chunk.resize(first[end] - begin);
    rt.heap().read(graph.edges, begin, std::span(chunk));
    for (; v < end; ++v)
      visit(std::span<const Edge>(chunk).subspan(first[v] - begin, first[v + 1] - first[v]));
  }
}

}  // namespace

Mirrors make_mirrors(esker::Runtime& rt, const DistributedGraph& graph) {
  std::vector<std::uint64_t> first(1, 0);
  std::vector<Location> locations;
  std::vector<std::uint64_t> on_pe(rt.n_pes());
  for_each_row(rt, graph, [&](std::span<const Edge> edges) {
    for (std::size_t e = 0; e < edges.size(); ++e) {
      const std::uint32_t pe = edges[e].to.pe();
      if (e == 0 || pe != edges[e - 1].to.pe()) locations.emplace_back(pe, on_pe[pe]++);
    }
    first.push_back(locations.size());
  });

  // A PE keeps the mirrors of PE 0's vertices, then of PE 1's, and so on.
  std::vector<std::uint64_t> from_pe = all_to_all(rt, on_pe);
  const std::uint64_t kept = std::reduce(from_pe.begin(), from_pe.end());
  std::exclusive_scan(from_pe.begin(), from_pe.end(), from_pe.begin(), std::uint64_t{0});
  const std::vector<std::uint64_t> base = all_to_all(rt, from_pe);
  for (Location& location : locations)
    location = Location(location.pe(), base[location.pe()] + location.index());

  std::array<std::uint64_t, 2> most{kept, locations.size()};
  rt.all_reduce(std::span<std::uint64_t>(most), esker::Reduction::kMax);
  if (most[0] > std::numeric_limits<std::uint32_t>::max()) {
    throw esker::Error(
        esker::Error::Kind::kConfiguration,
        std::to_string(most[0]) + " mirrors of vertices on a PE: at most 2^32 - 1; use more PEs");
  }
  std::array<std::uint64_t, 1> all{locations.size()};
  rt.all_reduce(std::span<std::uint64_t>(all), esker::Reduction::kSum);

  const auto firsts = rt.heap().allocate<std::uint64_t>(graph.most_vertices + 1);
  const auto all_places = rt.heap().allocate<Location>(std::max<std::uint64_t>(1, most[1]));
  rt.heap().write(firsts, 0, std::span<const std::uint64_t>(first));
  rt.heap().write(all_places, 0, std::span<const Location>(locations));
  const Arrivals in = count_arrivals(rt, graph);
  const auto mirror_of = rt.heap().allocate<std::uint32_t>(in.most);
  const auto store =
      rt.register_handler<std::uint64_t, std::uint64_t>("graph-store-mirror", StoreMirror{mirror_of});
  const EdgeTraversal traversal(rt, graph.first, graph.my_vertices, graph.my_edges);
  rt.launch(traversal.lanes(), TellMirrors{traversal, graph.edges, firsts, all_places, in.first, store},
            "graph-tell-mirrors");
  rt.barrier_all();
  rt.heap().write(in.first, 0, std::span<const std::uint64_t>(in.mine));
  rt.barrier_all();
  return {firsts,   all_places, locations.size(), all[0], std::max<std::uint64_t>(1, most[0]),
          in.first, mirror_of};
}

}  // namespace graph
