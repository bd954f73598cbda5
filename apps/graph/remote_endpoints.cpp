// A bit for each vertex that an edge leads to; its number is that of the bits before it.
#include "remote_endpoints.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace graph {
namespace {

/// Numbers for some of the vertices of all PEs.
class Numbering {
 public:
  Numbering(std::uint32_t n_pes, const inputs::VertexPartition& partition) : first_of_pe_(n_pes) {
    std::uint64_t vertices = 0;
    for (std::uint32_t pe = 0; pe < n_pes; ++pe) {
      first_of_pe_[pe] = vertices;
      vertices += partition.count(pe);
    }
    bits_.resize(vertices / 64 + 1);
  }

  void add(Location location) { bits_[bit_of(location) / 64] |= std::uint64_t{1} << bit_of(location) % 64; }
  /// After the last add(). Returns how many there are.
  std::uint64_t count() {
    before_.resize(bits_.size());
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < bits_.size(); ++i) {
      before_[i] = count;
      count += static_cast<std::uint64_t>(std::popcount(bits_[i]));
    }
    return count;
  }
  std::uint64_t number_of(Location location) const {
    const std::uint64_t lower = (std::uint64_t{1} << bit_of(location) % 64) - 1;
    const std::size_t word = bit_of(location) / 64;
    return before_[word] + static_cast<std::uint64_t>(std::popcount(bits_[word] & lower));
  }

 private:
  std::uint64_t bit_of(Location location) const { return first_of_pe_[location.pe()] + location.index(); }

  std::vector<std::uint64_t> first_of_pe_;
  std::vector<std::uint64_t> bits_, before_;
};

}  // namespace

RemoteEndpoints make_remote_endpoints(esker::Runtime& rt, const DistributedGraph& graph) {
  Numbering numbering(rt.n_pes(), graph.partition);
  for_each_chunk(rt, graph, [&](std::uint64_t, std::span<const Edge> edges) {
    for (const Edge& edge : edges) {
      if (edge.to.pe() != rt.pe()) numbering.add(edge.to);
    }
  });
  std::array<std::uint64_t, 1> most{numbering.count()};
  rt.all_reduce(std::span<std::uint64_t>(most), esker::Reduction::kMax);
  if (most[0] > std::numeric_limits<std::uint32_t>::max()) {
    throw esker::Error(esker::Error::Kind::kConfiguration,
                       "the edges of a PE lead to " + std::to_string(most[0]) +
                           " vertices of others: at most 2^32 - 1; use more PEs");
  }
  const auto of_edge = rt.heap().allocate<std::uint32_t>(graph.edges.size());
  std::vector<std::uint32_t> numbers;
  for_each_chunk(rt, graph, [&](std::uint64_t first, std::span<const Edge> edges) {
    numbers.assign(edges.size(), 0);
    for (std::size_t i = 0; i < edges.size(); ++i) {
      if (edges[i].to.pe() != rt.pe())
        numbers[i] = static_cast<std::uint32_t>(numbering.number_of(edges[i].to));
    }
    rt.heap().write(of_edge, first, std::span<const std::uint32_t>(numbers));
  });
  return {of_edge, std::max<std::uint64_t>(1, most[0])};
}

}  // namespace graph
