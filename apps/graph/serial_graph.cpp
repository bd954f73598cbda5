// Edges are sorted as a whole: nothing in common with how PEs load theirs.
#include "serial_graph.hpp"

#include <algorithm>
#include <boost/sort/block_indirect_sort/block_indirect_sort.hpp>
#include <tuple>

namespace graph {
namespace {

struct Triple {
  std::uint32_t from;
  std::uint32_t to;
  double weight;
};

SerialGraph from_sorted(const std::vector<Triple>& triples, std::uint64_t vertices) {
  SerialGraph graph;
  graph.first.resize(vertices + 1);
  graph.to.reserve(triples.size());
  graph.weight.reserve(triples.size());
  for (const Triple& t : triples) {
    ++graph.first[t.from + std::size_t{1}];
    graph.to.push_back(t.to);
    graph.weight.push_back(t.weight);
  }
  for (std::size_t v = 0; v < vertices; ++v) graph.first[v + 1] += graph.first[v];
  return graph;
}

void sort(std::vector<Triple>& triples, std::uint32_t threads) {
  const auto before = [](const Triple& a, const Triple& b) {
    return std::tie(a.from, a.to, a.weight) < std::tie(b.from, b.to, b.weight);
  };
  boost::sort::block_indirect_sort(triples.begin(), triples.end(), before, threads);
}

}  // namespace

SerialGraph load_serially(const EdgeSource& source, bool undirected, std::uint32_t threads) {
  if (source.vertices() > std::uint64_t{1} << 32) {
    throw esker::Error(esker::Error::Kind::kConfiguration,
                       "a graph of more than 2^32 vertices cannot be verified: --verify off");
  }
  std::vector<Triple> triples;
  source.for_each_edge({0, 1}, [&](const inputs::Edge& edge) {
    if (edge.from == edge.to) return;
    const auto from = static_cast<std::uint32_t>(edge.from);
    const auto to = static_cast<std::uint32_t>(edge.to);
    triples.push_back({from, to, edge.weight});
    if (undirected) triples.push_back({to, from, edge.weight});
  });
  sort(triples, threads);
  const auto same_ends = [](const Triple& a, const Triple& b) { return a.from == b.from && a.to == b.to; };
  triples.erase(std::unique(triples.begin(), triples.end(), same_ends), triples.end());
  return from_sorted(triples, source.vertices());
}

SerialGraph reversed(const SerialGraph& graph, std::uint32_t threads) {
  std::vector<Triple> triples;
  triples.reserve(graph.to.size());
  for (std::uint64_t v = 0; v < graph.vertices(); ++v) {
    for (std::uint64_t e = graph.first[v]; e < graph.first[v + 1]; ++e)
      triples.push_back({graph.to[e], static_cast<std::uint32_t>(v), graph.weight[e]});
  }
  sort(triples, threads);
  return from_sorted(triples, graph.vertices());
}

}  // namespace graph
