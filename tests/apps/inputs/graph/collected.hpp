// All edges of a source of edges, through any number of parts.
#pragma once

#include <esker/apps/inputs/graph/edge.hpp>
#include <esker/apps/inputs/graph/graph_file.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "../in_parts.hpp"

namespace inputs::testing {

/// In order of parts, then of visits.
std::vector<Edge> edges_of(const auto& source, std::uint64_t parts) {
  const auto of_part = [&](Part part) {
    std::vector<Edge> edges;
    source.for_each_edge(part, [&](const Edge& edge) { edges.push_back(edge); });
    return edges;
  };
  return in_parts(of_part, parts);
}

std::vector<Edge> sorted(const auto& source, std::uint64_t parts) {
  std::vector<Edge> edges = edges_of(source, parts);
  std::sort(edges.begin(), edges.end());
  return edges;
}

inline EdgeCount count(const GraphFile& file, std::uint64_t parts) {
  EdgeCount total;
  for (std::uint64_t p = 0; p < parts; ++p) total += file.for_each_edge({p, parts}, [](const Edge&) {});
  return total;
}

}  // namespace inputs::testing
