#include "positions.hpp"

#include <span>
#include <string>
#include <vector>

namespace graph {

Positions make_positions(esker::Runtime& rt, const DistributedGraph& graph) {
  const std::uint64_t stride = (graph.most_vertices / 64 + 1) * 64;
  const std::uint64_t count = stride * rt.n_pes();
  if (count > (std::uint64_t{1} << 32) - 64) {
    throw esker::Error(esker::Error::Kind::kConfiguration,
                       std::to_string(rt.n_pes()) + " PEs have up to " + std::to_string(graph.most_vertices) +
                           " vertices each: together at most 2^32 - 64, a multiple of 64 of each PE");
  }
  return {stride, stride * rt.pe(), count};
}

esker::SymmetricArray<std::uint32_t> make_targets(esker::Runtime& rt, const DistributedGraph& graph,
                                                  const Positions& positions) {
  const auto targets = rt.heap().allocate<std::uint32_t>(graph.edges.size());
  std::vector<std::uint32_t> chunk;
  for_each_chunk(rt, graph, [&](std::uint64_t first, std::span<const Edge> edges) {
    chunk.clear();
    for (const Edge& edge : edges) chunk.push_back(positions.of(edge.to));
    rt.heap().write(targets, first, std::span<const std::uint32_t>(chunk));
  });
  return targets;
}

}  // namespace graph
