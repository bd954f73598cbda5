// The whole graph in one process, for serial references.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "edge_source.hpp"

namespace graph {

/// Made from the source alone, by the same rules as a DistributedGraph: no loops, the lightest of several
/// edges. Vertices have their global ids. 12 bytes an edge; at most 2^32 vertices.
struct SerialGraph {
  std::vector<std::uint64_t> first;  // of a vertex's edges, and the end
  std::vector<std::uint32_t> to;
  std::vector<double> weight;

  std::uint64_t vertices() const { return first.size() - 1; }
  std::uint64_t degree(std::uint64_t v) const { return first[v + 1] - first[v]; }
  std::span<const std::uint32_t> neighbours(std::uint64_t v) const {
    return std::span(to).subspan(first[v], degree(v));
  }
};

/// `threads` sort the edges.
SerialGraph load_serially(const EdgeSource& source, bool undirected, std::uint32_t threads = 1);
/// The same edges the other way round.
SerialGraph reversed(const SerialGraph& graph, std::uint32_t threads = 1);

}  // namespace graph
