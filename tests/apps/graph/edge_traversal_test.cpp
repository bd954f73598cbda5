// Traversals and chunks have each edge once, with its vertex, however edges are divided among lanes.
#include <esker/apps/graph/edge_chunks.hpp>
#include <esker/apps/graph/edge_traversal.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "../../runtime/pes.hpp"

namespace graph::testing {
namespace {

using esker::SymmetricArray;

/// Rows of these lengths.
std::vector<std::uint64_t> firsts_of(const std::vector<std::uint64_t>& degrees) {
  std::vector<std::uint64_t> first{0};
  for (const std::uint64_t degree : degrees) first.push_back(first.back() + degree);
  return first;
}

/// A hub first, in the middle and last, and empty rows at all ends, one row and many.
std::vector<std::vector<std::uint64_t>> shapes() {
  std::vector<std::uint64_t> many(1000, 0);
  for (std::uint64_t v = 0; v < many.size(); v += 7) many[v] = v % 13;
  many[500] = 700;
  return {{5}, {0, 0, 300, 0}, {1000, 1, 1, 0, 1}, {0, 3, 0, 0, 0, 0, 0, 0, 0, 2, 400}, many};
}

TEST(EdgeTraversal, FindsTheRowOfEachElementFromEachRowBefore) {
  for (const auto& degrees : shapes()) {
    auto first = firsts_of(degrees);
    const SymmetricArray<std::uint64_t> array(first.data(), first.size());
    for (std::uint64_t v = 0; v < degrees.size(); ++v) {
      for (std::uint64_t e = first[v]; e < first[v + 1]; ++e) {
        for (std::uint64_t from = 0; from <= v; from += 1 + from / 3)
          ASSERT_EQ(row_of(array, degrees.size(), from, e), v) << "element " << e << " from row " << from;
      }
    }
  }
}

TEST(EdgeTraversal, LanesTakeEachEdgeOnceWithItsVertex) {
  const auto config = esker::testing::tiny_config();
  const esker::Runtime rt(config);
  for (const auto& degrees : shapes()) {
    auto first = firsts_of(degrees);
    const std::uint64_t edges = first.back();
    EdgeTraversal traversal(rt, {first.data(), first.size()}, degrees.size(), edges);
    const std::uint64_t longest = *std::max_element(degrees.begin(), degrees.end());
    for (const EdgeSplit split :
         {EdgeSplit{edges, 1, 0}, traversal.split, EdgeSplit{edges, 1, 1}, EdgeSplit{edges, 1, 1024},
          EdgeSplit{edges, 32, 16}, EdgeSplit{edges, 3, 5}}) {
      traversal.split = split;
      traversal.by_vertex = split.per_lane == 0;
      std::vector<std::uint64_t> taken(edges);
      std::uint64_t most = 0;
      for (std::uint64_t id = 0; id < traversal.lanes(); ++id) {
        std::uint64_t mine = 0;
        for (auto state = traversal.begin(id); traversal.step(state) || traversal.next_row(state); ++mine) {
          const std::uint64_t v = state.vertex;
          const std::uint64_t e = state.edge;
          ASSERT_LT(e, edges);
          ASSERT_TRUE(first[v] <= e && e < first[v + 1]) << "edge " << e << ", vertex " << v;
          ++taken[e];
        }
        most = std::max(most, mine);
      }
      ASSERT_LE(most, traversal.by_vertex ? longest : split.per_lane);
      for (std::uint64_t e = 0; e < edges; ++e) ASSERT_EQ(taken[e], 1u) << "edge " << e;
    }
  }
}

TEST(EdgeTraversal, LanesThatRememberVerticesHaveOneEdgeEach) {
  esker::Runtime rt(esker::testing::tiny_config());
  auto with_none = shapes();
  with_none.push_back({0, 0});
  for (const auto& degrees : with_none) {
    auto first = firsts_of(degrees);
    const auto on_heap = rt.heap().allocate<std::uint64_t>(first.size());
    rt.heap().write(on_heap, 0, std::span<const std::uint64_t>(first));
    EdgeTraversal traversal(rt, on_heap, degrees.size(), first.back());
    traversal.by_vertex = false;  // as on a GPU
    traversal.split.stride = EdgeSplit::kDeviceStride;
    traversal.remember_vertices(rt);
    std::vector<std::uint64_t> taken(first.back());
    for (std::uint64_t id = 0; id < traversal.lanes(); ++id) {
      std::uint64_t mine = 0;
      for (auto state = traversal.begin(id); traversal.step(state) || traversal.next_row(state); ++mine) {
        ASSERT_LT(state.edge, taken.size());
        ASSERT_TRUE(first[state.vertex] <= state.edge && state.edge < first[state.vertex + 1]);
        ++taken[state.edge];
      }
      ASSERT_LE(mine, 1u);
    }
    for (std::uint64_t e = 0; e < taken.size(); ++e) ASSERT_EQ(taken[e], 1u) << "edge " << e;
    ASSERT_EQ(traversal.vertex_of.size(), first.back());
    if (traversal.vertex_of.size() > 0) rt.heap().free(traversal.vertex_of);
    rt.heap().free(on_heap);
  }
}

TEST(EdgeTraversal, HasNoLanesWithoutEdges) {
  std::vector<std::uint64_t> first{0, 0, 0};
  const esker::Runtime rt(esker::testing::tiny_config());
  EdgeTraversal traversal(rt, {first.data(), first.size()}, 2, 0);
  traversal.by_vertex = false;
  EXPECT_EQ(traversal.lanes(), 0u);
}

TEST(EdgeChunks, HaveEachEdgeOfEachAddedVertexOnceWithItsWord) {
  for (const auto& degrees : shapes()) {
    auto first = firsts_of(degrees);
    using Length = EdgeChunks<int>::Length;
    for (const Length of_pieces : {Length{1, 1}, Length{3, 3}, Length{4, 32}, Length{32, 32}, Length{1, 1000},
                                   Length{100000, 100000}}) {
      std::vector<EdgeChunks<int>::Chunk> room(degrees.size() + first.back() / of_pieces.least);
      const EdgeChunks<int> chunks{{room.data(), room.size()}, {first.data(), first.size()}, of_pieces};
      alignas(8) std::uint64_t length = 0, at_once = 0;
      std::uint64_t expected = 0, parts = 0;
      for (std::uint64_t v = degrees.size(); v-- > 0;) {  // not in the edges' order
        if (v % 3 == 1) continue;
        chunks.add(length, v, static_cast<int>(v));
        expected += degrees[v];
        parts += chunks.count(v);
      }
      ASSERT_LE(length, room.size());
      // With room for all made at once, the same.
      std::vector<EdgeChunks<int>::Chunk> other_room(room.size());
      const EdgeChunks<int> other{
          {other_room.data(), other_room.size()}, {first.data(), first.size()}, of_pieces};
      ASSERT_EQ(reserve(at_once, parts), 0u);
      std::uint64_t at = 0;
      for (std::uint64_t v = degrees.size(); v-- > 0;) {
        if (v % 3 != 1) at = other.write(at, v, static_cast<int>(v));
      }
      EXPECT_EQ(at_once, length);
      EXPECT_EQ(at, length);
      for (std::uint64_t i = 0; i < length; ++i) {
        ASSERT_EQ(other[i].edge, chunks[i].edge);
        ASSERT_EQ(other[i].end, chunks[i].end);
        ASSERT_EQ(other[i].word, chunks[i].word);
      }
      std::vector<bool> seen(first.back());
      std::uint64_t edges = 0;
      for (std::uint64_t i = 0; i < length; ++i) {
        const auto& chunk = chunks[i];
        ASSERT_TRUE(chunk.edge < chunk.end && chunk.end - chunk.edge <= of_pieces.most);
        const auto v = static_cast<std::uint64_t>(chunk.word);
        ASSERT_TRUE(first[v] <= chunk.edge && chunk.end <= first[v + 1]) << "vertex " << v;
        for (std::uint64_t e = chunk.edge; e < chunk.end; ++e, ++edges) {
          ASSERT_FALSE(seen[e]) << "edge " << e;
          seen[e] = true;
        }
      }
      EXPECT_EQ(edges, expected);
    }
  }
}

}  // namespace
}  // namespace graph::testing
