// A bit for each vertex that an edge leads to; its number is that of the bits before it.
#include "remote_endpoints.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace graph {

VertexNumbers::VertexNumbers(std::uint32_t n_pes, const inputs::VertexPartition& partition)
    : first_of_pe_(n_pes) {
  std::uint64_t vertices = 0;
  for (std::uint32_t pe = 0; pe < n_pes; ++pe) {
    first_of_pe_[pe] = vertices;
    vertices += partition.count(pe);
  }
  bits_.resize(vertices / 64 + 1);
}

std::uint64_t VertexNumbers::count() {
  before_.resize(bits_.size());
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < bits_.size(); ++i) {
    before_[i] = count;
    count += static_cast<std::uint64_t>(std::popcount(bits_[i]));
  }
  return count;
}

std::uint64_t VertexNumbers::number_of(Location location) const {
  const std::uint64_t lower = (std::uint64_t{1} << bit_of(location) % 64) - 1;
  const std::size_t word = bit_of(location) / 64;
  return before_[word] + static_cast<std::uint64_t>(std::popcount(bits_[word] & lower));
}

RemoteEndpoints make_remote_endpoints(esker::Runtime& rt, const DistributedGraph& graph) {
  VertexNumbers numbers(rt.n_pes(), graph.partition);
  for_each_chunk(rt, graph, [&](std::uint64_t, std::span<const Edge> edges) {
    for (const Edge& edge : edges) {
      if (edge.to.pe() != rt.pe()) numbers.add(edge.to);
    }
  });
  const std::uint64_t mine = numbers.count();
  std::array<std::uint64_t, 1> most{std::max<std::uint64_t>(1, mine)};
  rt.all_reduce(std::span<std::uint64_t>(most), esker::Reduction::kMax);
  if (graph.most_vertices + most[0] > std::numeric_limits<std::uint32_t>::max()) {
    throw esker::Error(esker::Error::Kind::kConfiguration,
                       "a PE has " + std::to_string(graph.most_vertices) +
                           " vertices, and the edges of one lead to " + std::to_string(most[0]) +
                           " of others: together at most 2^32 - 1; use more PEs");
  }
  std::vector<Location> mine_at(mine);
  for_each_chunk(rt, graph, [&](std::uint64_t, std::span<const Edge> edges) {
    for (const Edge& edge : edges) {
      if (edge.to.pe() != rt.pe()) mine_at[numbers.number_of(edge.to)] = edge.to;
    }
  });
  const auto locations = rt.heap().allocate<Location>(most[0]);
  rt.heap().write(locations, 0, std::span<const Location>(mine_at));
  return {graph.most_vertices, locations, std::move(numbers)};
}

}  // namespace graph
