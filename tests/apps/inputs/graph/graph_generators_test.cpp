// Generated graphs: the same in any parts, and with the degrees that they should have.
#include <gtest/gtest.h>
#include <esker/apps/inputs/graph/bubble_mesh.hpp>
#include <esker/apps/inputs/graph/permutation.hpp>
#include <esker/apps/inputs/graph/random_graphs.hpp>
#include <esker/apps/inputs/graph/star_product.hpp>
#include <esker/error.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "collected.hpp"

namespace inputs::testing {
namespace {

template <typename Graph>
void expect_same_in_parts(const Graph& graph) {
  const std::vector<Edge> whole = edges_of(graph, 1);
  EXPECT_EQ(whole.size(), graph.edges());
  for (const std::uint64_t parts : kPartCounts) EXPECT_EQ(edges_of(graph, parts), whole) << parts << " parts";
}

/// Ends of edges at each vertex.
template <typename Graph>
std::vector<std::uint64_t> degrees(const Graph& graph) {
  std::vector<std::uint64_t> result(graph.vertices());
  graph.for_each_edge({}, [&](const Edge& edge) {
    ++result.at(edge.from);
    ++result.at(edge.to);
  });
  return result;
}

TEST(Permutation, IsABijectionThatInverseUndoes) {
  for (const std::uint64_t size : {1u, 2u, 3u, 5u, 16u, 17u, 100u, 1023u, 4096u, 10007u}) {
    for (const std::uint64_t seed : {1u, 2u}) {
      const Permutation permutation(size, seed);
      std::vector<bool> seen(size);
      for (std::uint64_t x = 0; x < size; ++x) {
        const std::uint64_t y = permutation(x);
        ASSERT_LT(y, size);
        ASSERT_FALSE(seen[y]) << size << ": " << y << " twice";
        seen[y] = true;
        ASSERT_EQ(permutation.inverse(y), x);
      }
    }
  }
}

TEST(Permutation, WorksOnNumbersOfAllBits) {
  for (const std::uint64_t size : {UINT64_MAX, (std::uint64_t{1} << 63) + 1, std::uint64_t{1} << 62}) {
    const Permutation permutation(size, 3);
    for (const std::uint64_t x : {std::uint64_t{0}, std::uint64_t{1}, size / 2, size - 1}) {
      EXPECT_LT(permutation(x), size);
      EXPECT_EQ(permutation.inverse(permutation(x)), x);
    }
  }
}

TEST(Permutation, DependsOnTheSeedAndMovesNearlyAll) {
  const Permutation one(10000, 1);
  const Permutation two(10000, 2);
  int fixed = 0;
  int same = 0;
  for (std::uint64_t x = 0; x < 10000; ++x) {
    fixed += one(x) == x;
    same += one(x) == two(x);
  }
  EXPECT_LT(fixed, 10);  // one is expected
  EXPECT_LT(same, 10);
}

TEST(Kronecker, DoesNotDependOnTheParts) { expect_same_in_parts(Kronecker(9, kGapDegree, 27)); }
TEST(UniformRandom, DoesNotDependOnTheParts) { expect_same_in_parts(UniformRandom(9, kGapDegree, 27)); }
TEST(BubbleMesh, DoesNotDependOnTheParts) { expect_same_in_parts(BubbleMesh(3, 5, 27)); }

TEST(Kronecker, DependsOnTheSeed) {
  EXPECT_NE(edges_of(Kronecker(8, 4, 1), 1), edges_of(Kronecker(8, 4, 2), 1));
  EXPECT_NE(edges_of(UniformRandom(8, 4, 1), 1), edges_of(UniformRandom(8, 4, 2), 1));
  EXPECT_NE(edges_of(BubbleMesh(2, 2, 1), 1), edges_of(BubbleMesh(2, 2, 2), 1));
}

// Each of the 14 levels halves the vertices, and one half draws A + B = 0.76 of the ends: the first vertex is
// expected to be `from` in a fraction of 0.76^14 of the edges, before it is renamed.
TEST(Kronecker, HasThePowerLawOfItsParameters) {
  const Kronecker graph(14, kGapDegree, 5);
  EXPECT_EQ(graph.vertices(), 16384u);
  EXPECT_EQ(graph.edges(), 262144u);
  std::vector<std::uint64_t> out(graph.vertices());
  graph.for_each_edge({}, [&](const Edge& edge) { ++out.at(edge.from); });
  std::sort(out.rbegin(), out.rend());
  const double most = 262144 * std::pow(0.76, 14);  // 5 620
  EXPECT_NEAR(static_cast<double>(out[0]), most, 0.05 * most);
  const double next = most * 0.24 / 0.76;  // the 14 vertices with a single 1 among their bits
  EXPECT_NEAR(static_cast<double>(std::accumulate(out.begin() + 1, out.begin() + 15, std::uint64_t{0})),
              14 * next, 0.05 * 14 * next);
  EXPECT_GT(std::count(out.begin(), out.end(), 0u), 16384 / 4);  // many vertices without edges
}

// Loops are drawn with probability A + D = 0.62 a level; to = 0 with A + C = 0.76.
TEST(Kronecker, DrawsTheQuadrantsWithTheirProbabilities) {
  const Kronecker graph(1, 1 << 17, 11);
  std::vector<double> quadrant(4);
  graph.for_each_edge({}, [&](const Edge& edge) { quadrant[edge.from * 2 + edge.to] += 1.0 / (1 << 18); });
  if (quadrant[0] < quadrant[3]) std::reverse(quadrant.begin(), quadrant.end());  // the names may be swapped
  EXPECT_NEAR(quadrant[0], 0.57, 0.005);
  EXPECT_NEAR(quadrant[1], 0.19, 0.005);
  EXPECT_NEAR(quadrant[2], 0.19, 0.005);
  EXPECT_NEAR(quadrant[3], 0.05, 0.005);
}

TEST(UniformRandom, HasBinomialDegrees) {
  const UniformRandom graph(14, kGapDegree, 5);
  const std::vector<std::uint64_t> degree = degrees(graph);
  double variance = 0;
  for (const std::uint64_t d : degree)
    variance += (static_cast<double>(d) - 32) * (static_cast<double>(d) - 32);
  EXPECT_NEAR(variance / 16384, 32, 2);  // as the mean
  EXPECT_LT(*std::max_element(degree.begin(), degree.end()), 80u);
  EXPECT_GT(*std::min_element(degree.begin(), degree.end()), 5u);
}

TEST(RandomGraph, WeightsAreUniformFrom1To255) {
  std::vector<int> seen(256);
  Kronecker(12, kGapDegree, 3).for_each_edge({}, [&](const Edge& edge) {
    ASSERT_GE(edge.weight, 1);
    ASSERT_LE(edge.weight, 255);
    ++seen[static_cast<std::size_t>(edge.weight)];
  });
  EXPECT_GT(*std::min_element(seen.begin() + 1, seen.end()), 150);  // 257 are expected
}

TEST(RandomGraph, RefusesSettingsOutOfRange) {
  EXPECT_THROW(Kronecker(41, 16, 1), esker::Error);
  EXPECT_THROW(UniformRandom(10, 0, 1), esker::Error);
  EXPECT_THROW(BubbleMesh(0, 1, 1), esker::Error);
  EXPECT_THROW(BubbleMesh(1, (1 << 20) + 1, 1), esker::Error);
}

TEST(BubbleMesh, HasDegrees1To3And292OnAverage) {
  const BubbleMesh mesh(20, 20, 9);
  const std::vector<std::uint64_t> degree = degrees(mesh);
  std::vector<std::uint64_t> have(4);
  for (const std::uint64_t d : degree) ++have.at(d);
  EXPECT_EQ(have[0], 0u);
  EXPECT_LE(have[1], 2u);
  EXPECT_GT(have[2], 400u * 18);  // the rims of the holes, and of the mesh
  EXPECT_NEAR(2.0 * static_cast<double>(mesh.edges()) / static_cast<double>(mesh.vertices()), 2.92, 0.02);
}

TEST(BubbleMesh, HasNoEdgeTwice) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  BubbleMesh(4, 3, 9).for_each_edge({}, [&](const Edge& edge) {
    EXPECT_NE(edge.from, edge.to);
    EXPECT_TRUE(seen.insert(std::minmax(edge.from, edge.to)).second);
  });
}

TEST(BubbleMesh, IsConnected) {
  for (const std::uint64_t seed : {1u, 2u, 3u, 4u, 5u}) {
    const BubbleMesh mesh(6, 7, seed);
    std::vector<std::uint64_t> root(mesh.vertices());
    std::iota(root.begin(), root.end(), std::uint64_t{0});
    const auto find = [&](std::uint64_t v) {
      while (root[v] != v) v = root[v] = root[root[v]];
      return v;
    };
    std::uint64_t components = mesh.vertices();
    mesh.for_each_edge({}, [&](const Edge& edge) {
      const std::uint64_t a = find(edge.from);
      const std::uint64_t b = find(edge.to);
      components -= a != b;
      root[a] = b;
    });
    EXPECT_EQ(components, 1u);
  }
}

// A planar connected graph has edges - vertices + 1 inner faces (Euler). In a honeycomb of even width and
// height each brick is one; a hole merges the bricks that it touches into one.
TEST(BubbleMesh, HasTheFacesOfAPlanarMeshWithHoles) {
  const BubbleMesh mesh(6, 7, 1);
  const std::uint64_t width = 6 * 16;
  const std::uint64_t height = 7 * 16;
  const std::uint64_t bricks = (width - 1) * height + width / 2 * (height - 1) - width * height + 1;
  // 36 vertices and 63 edges less a hole: 27 faces fewer.
  EXPECT_EQ(mesh.edges() - mesh.vertices() + 1, bricks - 42 * 27);
}

TEST(StarProduct, HasTheEdgesAndTrianglesOfItsFormulas) {
  for (const char* const text :
       {"0:3x4", "1:1", "1:3", "1:3x4x5", "1:2x2x1x6", "2:1", "2:3x4x5", "2:1x1x7x2"}) {
    const StarProduct graph(text);
    expect_same_in_parts(graph);
    std::vector<std::vector<bool>> joined(graph.vertices(), std::vector<bool>(graph.vertices()));
    graph.for_each_edge({}, [&](const Edge& edge) {
      ASSERT_LT(edge.to, edge.from);
      ASSERT_LT(edge.from, graph.vertices());
      EXPECT_FALSE(joined[edge.from][edge.to]) << text << ": an edge twice";
      joined[edge.from][edge.to] = true;
    });
    std::uint64_t triangles = 0;
    for (std::uint64_t a = 0; a < graph.vertices(); ++a) {
      for (std::uint64_t b = 0; b < a; ++b) {
        if (!joined[a][b]) continue;
        for (std::uint64_t c = 0; c < b; ++c) triangles += joined[a][c] && joined[b][c] ? 1 : 0;
      }
    }
    EXPECT_EQ(graph.triangles(), triangles) << text;
  }
}

TEST(StarProduct, RefusesWhatIsNoProduct) {
  for (const char* const text : {"", "1", "3:2", "1:", "1:x", "1:3x", "1:3x0", "1:a", "12:3", "1:4294967296",
                                 "1:65535x65536", "1:4294967295x4294967295"})
    EXPECT_THROW(StarProduct{text}, esker::Error) << text;
  EXPECT_EQ(StarProduct("1:65535x65535").vertices(), std::uint64_t{1} << 32);
}

}  // namespace
}  // namespace inputs::testing
