// Mirrors of vertices, as PowerGraph has them: a PE with edges from another's vertex keeps one copy of what
// that vertex has, however many the edges are.
#pragma once

#include <cstdint>

#include <esker/esker.hpp>

#include "distributed_graph.hpp"
#include "location.hpp"

namespace graph {

/// Encoding. Vertex v of this PE has a mirror on each PE that owns the other end of an edge out of v, this
/// one included, at the locations `locations[first[v]]` to `locations[first[v + 1] - 1]`, in order of PEs. A
/// PE's mirrors are in order of their vertices' Locations. What they hold is the application's: an array of
/// `most` elements on the heap. The edges into v leave the vertices whose mirrors here are
/// mirror_of[first_in[v]] to mirror_of[first_in[v + 1] - 1], in no particular order.
struct Mirrors {
  esker::SymmetricArray<std::uint64_t> first;
  esker::SymmetricArray<Location> locations;
  std::uint64_t of_mine;  // mirrors that this PE's vertices have
  std::uint64_t of_all;   // that all PEs' vertices have
  std::uint64_t most;     // mirrors that a PE keeps, at least 1
  esker::SymmetricArray<std::uint64_t> first_in;
  esker::SymmetricArray<std::uint32_t> mirror_of;
};

/// Collective. Error{kConfiguration} if a PE had to keep more than 2^32 - 1 mirrors.
Mirrors make_mirrors(esker::Runtime& rt, const DistributedGraph& graph);

}  // namespace graph
