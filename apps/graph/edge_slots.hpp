// A slot for each edge at the PE where its other end lives: what lanes push along edges by put.
#pragma once

#include <cstdint>
#include <vector>

#include <esker/esker.hpp>

#include "distributed_graph.hpp"
#include "location.hpp"

namespace graph {

/// Slots for what arrives along edges: those of the edges to this PE's vertex v are `first[v]` to
/// `first[v + 1] - 1`.
struct Arrivals {
  esker::SymmetricArray<std::uint64_t> first;
  std::vector<std::uint64_t> mine;  // this PE's part of `first`
  std::uint64_t most;               // edges to a PE's vertices, at least 1
};

/// Collective. Counts the edges to each vertex.
Arrivals count_arrivals(esker::Runtime& rt, const DistributedGraph& graph);

/// Encoding. Edge e of this PE, to vertex v of PE p, has slot of_edge[e] on p. No other edge has it. On p,
/// the slots of the edges to v are first[v] to first[v + 1] - 1, in no particular order. What slots hold is
/// the application's: an array of `most` elements on the heap.
struct EdgeSlots {
  esker::SymmetricArray<std::uint64_t> first;
  esker::SymmetricArray<Location> of_edge;
  std::uint64_t most;  // slots of a PE, at least 1
};

/// Collective. Each edge asks its other end's owner for a slot by an active message, and is answered by a
/// put.
EdgeSlots make_edge_slots(esker::Runtime& rt, const DistributedGraph& graph);

}  // namespace graph
