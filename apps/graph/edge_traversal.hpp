// Lanes with equally many edges each, however many a vertex has: a hub's edges belong to many lanes.
#pragma once

#include <algorithm>
#include <cstdint>

#include <esker/esker.hpp>

namespace graph {

/// Which elements of an array each lane takes.
///
/// Encoding. `stride` lanes share a block of stride * per_lane elements; lane i of them takes every
/// stride-th, from the block's element i on. On a GPU a wave's lanes so read neighbouring elements together,
/// where a lane with a run of its own would read a line of memory for each. On the CPU a lane has a run.
struct EdgeSplit {
  static constexpr std::uint64_t kDeviceStride = 32;  // a wave, or half of one
  static constexpr std::uint64_t kLeastEdges = 16;   // of a lane, for which it searches its first vertex once
  static constexpr std::uint64_t kMostEdges = 1024;  // on the CPU
  static constexpr std::uint64_t kHostLanes = 1024;  // a thread, before lanes have more edges

  std::uint64_t edges = 0;
  std::uint64_t stride = 1;
  std::uint64_t per_lane = 1;

  /// For this PE's launches.
  static EdgeSplit of(const esker::Runtime& rt, std::uint64_t edges) {
    if (rt.runs_on_device()) return {edges, kDeviceStride, kLeastEdges};
    const std::uint64_t lanes = kHostLanes * rt.host_threads();
    return {edges, 1, std::clamp(edges / lanes, kLeastEdges, kMostEdges)};
  }

  std::uint64_t lanes() const {
    const std::uint64_t block = stride * per_lane;
    return (edges + block - 1) / block * stride;
  }
  /// Of lane `id`; end(id) is the block's. There is nothing for a lane whose begin is not below its end.
  ESKER_HD std::uint64_t begin(std::uint64_t id) const {
    return id / stride * (stride * per_lane) + id % stride;
  }
  ESKER_HD std::uint64_t end(std::uint64_t id) const {
    const std::uint64_t block_end = (id / stride + 1) * (stride * per_lane);
    return block_end < edges ? block_end : edges;
  }
};

/// The last of `rows` rows that begins at element `at` or before; with elements, since of rows that begin
/// together all but the last are empty. Requires first[from] <= at < first[rows]. Costs twice the logarithm
/// of the distance from row `from`.
ESKER_HD inline std::uint64_t row_of(esker::SymmetricArray<std::uint64_t> first, std::uint64_t rows,
                                     std::uint64_t from, std::uint64_t at) {
  std::uint64_t step = 1;
  for (; from + step < rows && first[from + step] <= at; step *= 2) from += step;
  for (step /= 2; step > 0; step /= 2) {
    if (from + step < rows && first[from + step] <= at) from += step;
  }
  return from;
}

/// A lane's traversal of its edges, which knows the vertex of each.
///
/// Encoding. On a GPU lanes have equally many edges, one each if their vertices have been remembered. On the
/// CPU a lane has a vertex, as a search for the first edge's costs more there than hubs do: what waits for a
/// hub's lane is not the lanes beside it.
/// Contract. begin(id), before the first edge; then step(), which returns true if the next edge is of the
/// same vertex; where it returns false, next_row() finds the vertex, or returns false: there is no next edge.
struct EdgeTraversal {
  struct State {
    std::uint64_t edge, end;  // the next edge is edge + stride; the lane's last one is before `end`
    std::uint64_t row_end;    // of the vertex's edges that are before `end`
    std::uint64_t vertex;
  };
  esker::SymmetricArray<std::uint64_t> first;  // edges of vertex v are first[v] to first[v + 1] - 1
  std::uint64_t vertices;
  EdgeSplit split;
  bool by_vertex;                                  // the split is not in use but for its stride, which is 1
  esker::SymmetricArray<std::uint32_t> vertex_of;  // of each edge; empty: lanes search for it

  /// All edges of this PE's first `n` vertices, `edges` in number.
  EdgeTraversal(const esker::Runtime& rt, esker::SymmetricArray<std::uint64_t> first_edges, std::uint64_t n,
                std::uint64_t edges)
      : first{first_edges}, vertices{n}, split{EdgeSplit::of(rt, edges)}, by_vertex{!rt.runs_on_device()} {}

  /// Collective. For a traversal that is made often: on a GPU 4 bytes an edge, if a PE has no more than 2^32
  /// vertices.
  void remember_vertices(esker::Runtime& rt);

  std::uint64_t lanes() const { return by_vertex ? vertices : split.lanes(); }
  ESKER_HD State begin(std::uint64_t id) const {
    if (by_vertex) return {first[id] - split.stride, first[id + 1], 0, id};
    return {split.begin(id) - split.stride, split.end(id), 0, 0};  // may be below 0: step() wraps it back
  }
  ESKER_HD bool step(State& state) const {
    state.edge += split.stride;
    return state.edge < state.row_end;
  }
  ESKER_HD bool next_row(State& state) const {
    if (state.edge >= state.end) return false;
    if (vertex_of.size() > 0) {
      state.vertex = vertex_of[state.edge];
    } else {  // past the row that has ended, which most often is the row's neighbour
      state.vertex = row_of(first, vertices, state.vertex + (state.row_end > 0 ? 1 : 0), state.edge);
    }
    const std::uint64_t row_end = first[state.vertex + 1];
    state.row_end = row_end < state.end ? row_end : state.end;
    return true;
  }
};

}  // namespace graph
