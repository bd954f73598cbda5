// Each PE lists where its vertices' edges lead, the PEs tell each other how many mirrors that makes, and each
// edge tells its other end which element is its vertex's.
#include "mirrors.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>
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
struct StoreSource {
  static constexpr std::uint64_t kOwnershipBytes = sizeof(std::uint64_t);
  esker::SymmetricArray<std::uint32_t> source_of;
  ESKER_HD void operator()(esker::HandlerContext& /*context*/, std::uint64_t& cursor,
                           const std::uint64_t& element) const {
    source_of[cursor++] = static_cast<std::uint32_t>(element);
  }
};

/// A lane tells its edges' other ends which element there is that of the vertices that they leave.
struct TellSources {
  EdgeTraversal traversal;
  esker::SymmetricArray<Edge> edges;
  esker::SymmetricArray<std::uint64_t> first;  // of each vertex's locations
  esker::SymmetricArray<Location> locations;   // one for each PE that the vertex has edges to
  esker::SymmetricArray<std::uint64_t> cursor;
  esker::Handler<std::uint64_t, std::uint64_t> store;
  ESKER_HD void operator()(esker::WorkItem item) const {
    EdgeTraversal::State at = traversal.begin(item.global_id());
    std::uint64_t there = 0;
    for (;;) {
      if (!traversal.step(at)) {
        if (!traversal.next_row(at)) return;
        there = first[at.vertex];
      }
      const Location to = edges[at.edge].to;
      while (locations[there].pe() != to.pe()) ++there;  // both are in order of PEs
      esker::shmem_am(item, store, &cursor[to.index()], locations[there].index(), to.pe());
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

std::uint64_t whole_runs(std::uint64_t count) {
  return (count + Mirrors::kRun - 1) / Mirrors::kRun * Mirrors::kRun;
}

/// Vertices whose mirrors are filled together.
struct Run {
  std::array<std::uint32_t, Mirrors::kRun> vertices;
  Location mirror;  // of the first
};

/// `sent_to[p]` are this PE's vertices with mirrors on PE p, from element base[p] on.
std::vector<Run> make_runs(const std::vector<std::vector<std::uint32_t>>& sent_to,
                           const std::vector<std::uint64_t>& base) {
  std::vector<Run> runs;
  for (std::uint32_t pe = 0; pe < sent_to.size(); ++pe) {
    const std::vector<std::uint32_t>& vertices = sent_to[pe];
    for (std::size_t i = 0; i < vertices.size(); i += Mirrors::kRun) {
      Run run{{}, {pe, base[pe] + i}};
      for (std::size_t k = 0; k < Mirrors::kRun; ++k)
        run.vertices[k] = vertices[std::min(i + k, vertices.size() - 1)];
      runs.push_back(run);
    }
  }
  std::stable_sort(runs.begin(), runs.end(),
                   [](const Run& a, const Run& b) { return a.vertices.back() < b.vertices.back(); });
  return runs;
}

/// Collective. Where each edge into a vertex of this PE finds what the vertex has that it leaves. `first` and
/// `locations` are TellSources's.
void tell_sources(esker::Runtime& rt, const DistributedGraph& graph, const std::vector<std::uint64_t>& first,
                  const std::vector<Location>& locations, Mirrors& mirrors) {
  std::array<std::uint64_t, 1> most{locations.size()};
  rt.all_reduce(std::span<std::uint64_t>(most), esker::Reduction::kMax);
  const auto firsts = rt.heap().allocate<std::uint64_t>(graph.most_vertices + 1);
  const auto all_locations = rt.heap().allocate<Location>(std::max<std::uint64_t>(1, most[0]));
  rt.heap().write(firsts, 0, std::span<const std::uint64_t>(first));
  rt.heap().write(all_locations, 0, std::span<const Location>(locations));
  const Arrivals in = count_arrivals(rt, graph);
  mirrors.first_in = in.first;
  mirrors.source_of = rt.heap().allocate<std::uint32_t>(in.most);
  const auto store =
      rt.register_handler<std::uint64_t, std::uint64_t>("graph-store-source", StoreSource{mirrors.source_of});
  const EdgeTraversal traversal(rt, graph.first, graph.my_vertices, graph.my_edges);
  rt.launch(traversal.lanes(), TellSources{traversal, graph.edges, firsts, all_locations, in.first, store},
            "graph-tell-sources");
  rt.barrier_all();
  rt.heap().write(in.first, 0, std::span<const std::uint64_t>(in.mine));
  rt.heap().free(all_locations);
  rt.heap().free(firsts);
  rt.barrier_all();
}

}  // namespace

Mirrors make_mirrors(esker::Runtime& rt, const DistributedGraph& graph) {
  std::vector<std::uint64_t> first(1, 0);
  std::vector<Location> locations;
  std::vector<std::vector<std::uint32_t>> sent_to(rt.n_pes());
  for_each_row(rt, graph, [&](std::span<const Edge> edges) {
    const std::uint64_t vertex = first.size() - 1;
    for (std::size_t e = 0; e < edges.size(); ++e) {
      const std::uint32_t pe = edges[e].to.pe();
      if (e > 0 && pe == edges[e - 1].to.pe()) continue;
      locations.emplace_back(pe, pe == rt.pe() ? vertex : sent_to[pe].size());
      if (pe != rt.pe()) sent_to[pe].push_back(static_cast<std::uint32_t>(vertex));
    }
    first.push_back(locations.size());
  });

  // Behind its vertices a PE keeps the mirrors of PE 0's, then of PE 1's, and so on.
  std::vector<std::uint64_t> on_pe(rt.n_pes());
  for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe) on_pe[pe] = whole_runs(sent_to[pe].size());
  std::vector<std::uint64_t> from_pe = all_to_all(rt, on_pe);
  const std::uint64_t own = whole_runs(std::max<std::uint64_t>(1, graph.most_vertices));
  std::array<std::uint64_t, 1> size{std::reduce(from_pe.begin(), from_pe.end(), own)};
  std::exclusive_scan(from_pe.begin(), from_pe.end(), from_pe.begin(), own);
  const std::vector<std::uint64_t> base = all_to_all(rt, from_pe);
  rt.all_reduce(std::span<std::uint64_t>(size), esker::Reduction::kMax);
  if (size[0] > std::numeric_limits<std::uint32_t>::max()) {
    throw esker::Error(esker::Error::Kind::kConfiguration,
                       std::to_string(size[0]) +
                           " vertices and mirrors of vertices on a PE: at most 2^32 - 1; use more PEs");
  }
  for (Location& location : locations) {
    if (location.pe() != rt.pe()) location = {location.pe(), base[location.pe()] + location.index()};
  }

  const std::vector<Run> runs = make_runs(sent_to, base);
  std::vector<std::uint32_t> sent, last;
  std::vector<Location> to;
  for (const Run& run : runs) {
    sent.insert(sent.end(), run.vertices.begin(), run.vertices.end());
    last.push_back(run.vertices.back());
    to.push_back(run.mirror);
  }
  std::array<std::uint64_t, 1> all{runs.size()}, most{std::max<std::uint64_t>(1, runs.size())};
  rt.all_reduce(std::span<std::uint64_t>(all), esker::Reduction::kSum);
  rt.all_reduce(std::span<std::uint64_t>(most), esker::Reduction::kMax);
  Mirrors mirrors{rt.heap().allocate<std::uint32_t>(most[0] * Mirrors::kRun),
                  rt.heap().allocate<Location>(most[0]),
                  std::move(last),
                  all[0],
                  size[0],
                  {},
                  {}};
  rt.heap().write(mirrors.sent, 0, std::span<const std::uint32_t>(sent));
  rt.heap().write(mirrors.mirrors, 0, std::span<const Location>(to));
  tell_sources(rt, graph, first, locations, mirrors);
  return mirrors;
}

}  // namespace graph
