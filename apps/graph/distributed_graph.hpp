// A graph over all PEs: each has its own vertices with their edges, on the symmetric heap.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <esker/esker.hpp>
#include <nlohmann/json_fwd.hpp>

#include "../inputs/graph/vertex_partition.hpp"
#include "edge_source.hpp"
#include "location.hpp"

namespace graph {

/// An edge at the PE that owns the vertex it leaves.
struct Edge {
  Location to;
  double weight;
};

/// The rows of a distributed sparse matrix (CSR).
///
/// Encoding. Vertex v, for v below my_vertices, is the partition's global_id(pe, v); its edges are
/// edges[first[v]] to edges[first[v + 1]] - 1, in order of the other end's Location. There are no loops, and
/// of several edges between one pair of vertices the lightest is left; so the same edges make the same graph,
/// in whatever order and parts they come.
///
/// Sizes. The heap is symmetric: arrays are as long as the PE with most needs them.
struct DistributedGraph {
  inputs::VertexPartition partition;
  esker::SymmetricArray<std::uint64_t> first;
  esker::SymmetricArray<Edge> edges;
  std::uint64_t my_vertices;
  std::uint64_t most_vertices;  // over the PEs
  std::uint64_t my_edges;
  std::uint64_t all_edges;
  double cut;  // of all edges, those that leave their PE

  std::uint64_t global_id(const esker::Runtime& rt, std::uint64_t vertex) const {
    return partition.global_id(rt.pe(), vertex);
  }
  Location place_of(std::uint64_t global_id) const {
    return {partition.owner(global_id), partition.local_index(global_id)};
  }
};

/// Edges that a PE has under way at once while a graph is loaded.
constexpr std::uint64_t kChunkEdges = std::uint64_t{1} << 18;

/// Collective. Each PE takes its part of the source twice: first its edges are counted where they belong,
/// then they go there. With `undirected` each goes in both directions. No PE sees more than its part and its
/// own vertices' edges. Its host threads share its part, where more parts are read sooner. 24 bytes of heap
/// for each edge of a chunk are given back.
DistributedGraph load(esker::Runtime& rt, const EdgeSource& source, inputs::VertexPartition partition,
                      bool undirected, std::uint64_t chunk_edges = kChunkEdges);

/// Calls visit(first, edges) for this PE's edges, some kChunkEdges at a time.
template <class Visit>
void for_each_chunk(esker::Runtime& rt, const DistributedGraph& graph, const Visit& visit) {
  std::vector<Edge> chunk;
  for (std::uint64_t first = 0; first < graph.my_edges; first += chunk.size()) {
    chunk.resize(std::min(kChunkEdges, graph.my_edges - first));
    rt.heap().read(graph.edges, first, std::span(chunk));
    visit(first, std::span<const Edge>(chunk));
  }
}

/// What reports say about the graph.
nlohmann::json facts(const Options& options, const DistributedGraph& graph);

}  // namespace graph
