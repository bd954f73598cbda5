// Mirrors of vertices, as PowerGraph has them: a PE with edges from another's vertex keeps one copy of what
// that vertex has, however many the edges are.
#pragma once

#include <cstdint>
#include <vector>

#include <esker/esker.hpp>

#include "distributed_graph.hpp"
#include "location.hpp"

namespace graph {

/// Encoding. What vertices have is the application's: an array of `size` elements on the heap. Element v is
/// that of this PE's vertex v; behind those of its vertices stand its mirrors, one for each vertex of another
/// PE with an edge to one of this PE's. The edges into v leave the vertices whose elements here are
/// source_of[first_in[v]] to source_of[first_in[v + 1] - 1], in no particular order.
///
/// Runs. A PE's mirrors of one other PE's vertices are in order of these vertices, from a multiple of kRun
/// on, so that one put fills kRun of them. Of this PE's run r, the vertices are sent[kRun * r] to sent[kRun *
/// r + kRun - 1], in rising order, and their mirrors begin at mirrors[r]. Where vertices are too few, the
/// last is there several times, and so is its mirror. Runs are in order of their last vertex.
struct Mirrors {
  static constexpr std::uint64_t kRun = 4;
  esker::SymmetricArray<std::uint32_t> sent;
  esker::SymmetricArray<Location> mirrors;
  std::vector<std::uint32_t> last;  // vertex of each run of this PE
  std::uint64_t runs_of_all;        // of all PEs together
  std::uint64_t size;               // a multiple of kRun, at least kRun
  esker::SymmetricArray<std::uint64_t> first_in;
  esker::SymmetricArray<std::uint32_t> source_of;
};

/// Collective. Error{kConfiguration} if a PE had to keep more than 2^32 - 1 elements.
Mirrors make_mirrors(esker::Runtime& rt, const DistributedGraph& graph);

}  // namespace graph
