// All edges of a source of edges, through any number of parts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <esker/apps/inputs/graph/edge.hpp>
#include <esker/apps/inputs/graph/graph_file.hpp>
#include <esker/apps/inputs/graph/part.hpp>

namespace graph {

constexpr std::uint64_t kPartCounts[] = {1, 2, 3, 7, 1000};

/// In order of parts, then of visits.
template <typename Source>
std::vector<Edge> in_parts(const Source& source, std::uint64_t parts) {
  std::vector<Edge> edges;
  for (std::uint64_t p = 0; p < parts; ++p) {
    source.for_each_edge({p, parts}, [&](const Edge& edge) { edges.push_back(edge); });
  }
  return edges;
}

template <typename Source>
std::vector<Edge> sorted(const Source& source, std::uint64_t parts) {
  std::vector<Edge> edges = in_parts(source, parts);
  std::sort(edges.begin(), edges.end());
  return edges;
}

inline EdgeCount count(const GraphFile& file, std::uint64_t parts) {
  EdgeCount total;
  for (std::uint64_t p = 0; p < parts; ++p) total += file.for_each_edge({p, parts}, [](const Edge&) {});
  return total;
}

}  // namespace graph
