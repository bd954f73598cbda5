// A list of the edges of some vertices, which lanes read; those of a hub in several chunks.
#pragma once

#include <cstdint>

#include <esker/esker.hpp>

#include "distributed_graph.hpp"
#include "list_runs.hpp"

namespace graph {

/// Edges of one vertex, and what is to be said along them.
template <class Word>
struct EdgeChunk {
  std::uint64_t edge, end;
  Word word;
};

/// An EdgeTraversal visits all edges; this list has the edges of vertices that lanes have chosen. A prefix
/// sum over their degrees would divide them evenly, but it is enough that no lane has more than a few.
///
/// Encoding. The edges of a vertex are in chunks of the least length. A vertex with many edges has longer
/// chunks, since the lane that adds them writes one after the other. Contract. In one kernel each vertex is
/// added once at most, so the list is never full.
template <class Word>
struct EdgeChunks {
  using Chunk = EdgeChunk<Word>;
  /// Edges of a chunk.
  struct Length {
    std::uint64_t least, most;
    ESKER_HD std::uint64_t of(std::uint64_t edges) const {
      const std::uint64_t many = edges / kFewChunks;
      return many < least ? least : many < most ? many : most;
    }
  };
  static constexpr std::uint64_t kFewChunks = 16;
  static constexpr std::uint64_t kMostOnDevice = 32;

  esker::SymmetricArray<Chunk> chunks;
  esker::SymmetricArray<std::uint64_t> first;  // the graph's
  Length length_of;

  /// Collective. On a GPU chunks have `least` edges, of vertices with many edges up to kMostOnDevice; on a
  /// CPU all, since few lanes run at once.
  static EdgeChunks allocate(esker::Runtime& rt, const DistributedGraph& graph, std::uint64_t least) {
    constexpr std::uint64_t kAll = std::uint64_t{1} << 40;
    const Length length = rt.runs_on_device() ? Length{least, kMostOnDevice} : Length{kAll, kAll};
    return {rt.heap().allocate<Chunk>(graph.most_vertices + graph.edges.size() / length.least), graph.first,
            length};
  }

  /// Chunks of a vertex's edges.
  ESKER_HD std::uint64_t count(std::uint64_t vertex) const {
    const std::uint64_t edges = first[vertex + 1] - first[vertex];
    return edges == 0 ? 0 : (edges - 1) / length_of.of(edges) + 1;
  }
  /// Writes a vertex's chunks to elements that were reserved, and returns the index behind them.
  ESKER_HD std::uint64_t write(std::uint64_t at, std::uint64_t vertex, const Word& word) const {
    const std::uint64_t begin = first[vertex], end = first[vertex + 1];
    const std::uint64_t most_edges = length_of.of(end - begin);
    for (std::uint64_t edge = begin; edge < end; edge += most_edges) {
      chunks[at++] = {edge, end - edge < most_edges ? end : edge + most_edges, word};
    }
    return at;
  }
  /// Adds the edges of a vertex, if it has any.
  ESKER_HD void add(std::uint64_t& length, std::uint64_t vertex, const Word& word) const {
    if (const std::uint64_t parts = count(vertex); parts > 0) write(reserve(length, parts), vertex, word);
  }
  ESKER_HD const Chunk& operator[](std::uint64_t i) const { return chunks[i]; }
};

}  // namespace graph
