// Vertices of all PEs as 32-bit numbers, from which their PE and their place in bitmaps follow.
#pragma once

#include <cstdint>

#include <esker/esker.hpp>

#include "distributed_graph.hpp"

namespace graph {

/// Encoding. Vertex v of PE p has position p * stride + v. The stride is a multiple of 64 and no less than
/// any PE's number of vertices, so that each PE's vertices are whole words of a bitmap over all positions.
struct Positions {
  static constexpr std::uint32_t kNone = 0xffffffff;
  std::uint64_t stride = 64;
  std::uint64_t mine = 0;   // of this PE's vertex 0
  std::uint64_t count = 0;  // of all PEs

  ESKER_HD std::uint32_t of(Location at) const {
    return static_cast<std::uint32_t>(at.pe() * stride + at.index());
  }
  ESKER_HD Location place(std::uint32_t position) const {
    return {static_cast<std::uint32_t>(position / stride), position % stride};
  }
  ESKER_HD bool is_mine(std::uint32_t position) const { return position - mine < stride; }
};

/// Collective. Error{kConfiguration} if there were more than 2^32 - 64.
Positions make_positions(esker::Runtime& rt, const DistributedGraph& graph);

/// Collective. Where this PE's edges lead, edge for edge, in 4 bytes each.
esker::SymmetricArray<std::uint32_t> make_targets(esker::Runtime& rt, const DistributedGraph& graph,
                                                  const Positions& positions);

}  // namespace graph
