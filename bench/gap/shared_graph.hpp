// One graph that all threads of a process read, as compact as the GAP benchmark suite's.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "../../apps/graph/serial_graph.hpp"

namespace esker::bench {

using Vertex = std::int32_t;
using Weight = std::int32_t;

struct WeightedEdge {
  Vertex to;
  Weight weight;
};

/// Undirected: each edge is there in both directions. `to` is for who needs no weights.
struct SharedGraph {
  std::vector<std::int64_t> first;  // of a vertex's edges, and the end
  std::vector<Vertex> to;
  std::vector<WeightedEdge> edges;

  Vertex vertices() const { return static_cast<Vertex>(first.size() - 1); }
  std::int64_t degree(Vertex v) const { return first[at(v) + 1] - first[at(v)]; }
  static std::size_t at(Vertex v) { return static_cast<std::size_t>(v); }

  /// The first of the vertices with the most edges.
  Vertex busiest() const {
    Vertex found = 0;
    for (Vertex v = 0; v < vertices(); ++v) {
      if (degree(v) > degree(found)) found = v;
    }
    return found;
  }
};

inline SharedGraph share(const graph::SerialGraph& from, bool weighted) {
  SharedGraph shared{{from.first.begin(), from.first.end()}, {}, {}};
  for (std::size_t e = 0; e < from.to.size(); ++e) {
    const auto to = static_cast<Vertex>(from.to[e]);
    if (!weighted) {
      shared.to.push_back(to);
      continue;
    }
    const auto weight = static_cast<Weight>(from.weight[e]);
    if (weight < 1 || static_cast<double>(weight) != from.weight[e])
      throw std::runtime_error("a weight is no integer above 0");
    shared.edges.push_back({to, weight});
  }
  return shared;
}

}  // namespace esker::bench
