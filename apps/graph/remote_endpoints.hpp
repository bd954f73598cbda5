// The vertices of other PEs that this PE's edges lead to, each with a number: what lanes remember about them.
#pragma once

#include <cstdint>

#include <esker/esker.hpp>

#include "distributed_graph.hpp"

namespace graph {

/// Encoding. Edge e of this PE leads to remote endpoint of_edge[e], below `most`, the same for all edges to
/// one vertex. Of an edge to a vertex of this PE it says nothing.
struct RemoteEndpoints {
  esker::SymmetricArray<std::uint32_t> of_edge;
  std::uint64_t most;  // over the PEs, at least 1
};

/// Collective. A bit for each vertex of the graph, and a word for each 64, are given back.
/// Error{kConfiguration} if a PE's edges led to more than 2^32 - 1 vertices of others.
RemoteEndpoints make_remote_endpoints(esker::Runtime& rt, const DistributedGraph& graph);

}  // namespace graph
