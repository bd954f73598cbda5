// Vertices of all edges, for traversals that are made often.
#include "edge_traversal.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "prefix_sums.hpp"

namespace graph {

void EdgeTraversal::remember_vertices(esker::Runtime& rt) {
  if (by_vertex) return;
  std::array<std::uint64_t, 2> most{split.edges, vertices};
  rt.all_reduce(std::span<std::uint64_t>(most), esker::Reduction::kMax);
  if (most[0] == 0 || most[1] > std::uint64_t{1} << 32) return;
  const std::vector<std::uint64_t> rows = read_first(rt, first, vertices);
  std::vector<std::uint32_t> of_edges(split.edges);
  for (std::uint64_t v = 0; v < vertices; ++v)
    std::fill(of_edges.data() + rows[v], of_edges.data() + rows[v + 1], static_cast<std::uint32_t>(v));
  vertex_of = rt.heap().allocate<std::uint32_t>(most[0]);
  rt.heap().write(vertex_of, 0, std::span<const std::uint32_t>(of_edges));
  split.per_lane = 1;
}

}  // namespace graph
