// Valid files of every format, whole and in parts.
#include <gtest/gtest.h>
#include <esker/apps/inputs/graph/graph_file.hpp>

#include <string>
#include <vector>

#include "../gzip.hpp"
#include "collected.hpp"
#include "serialized_bytes.hpp"

namespace inputs::testing {
namespace {

using Edges = std::vector<Edge>;

/// The sum over parts is checked, and each number of parts has the edges of one part.
void expect_same_in_parts(const GraphFile& file) {
  const Edges whole = sorted(file, 1);
  for (const std::uint64_t parts : kPartCounts) {
    EXPECT_EQ(sorted(file, parts), whole) << parts << " parts";
    EXPECT_NO_THROW(file.check(count(file, parts))) << parts << " parts";
  }
}

std::string long_edge_list(std::uint64_t lines) {
  std::string text = "# from, to\n";
  for (std::uint64_t i = 0; i < lines; ++i) {
    text += std::to_string(i * i % 1009) + (i % 3 == 0 ? "\t" : " ") + std::to_string(i) + "\n";
    if (i % 500 == 0) text += "\n";
  }
  return text;
}

TEST(EdgeListFile, YieldsAnEdgeALine) {
  const WrittenFile written("0 1\n# comment\n 2\t1 \r\n\n1 5", ".el");
  const GraphFile file(written.path());
  EXPECT_EQ(edges_of(file, 1), (Edges{{0, 1, 1}, {2, 1, 1}, {1, 5, 1}}));
  EXPECT_EQ(file.header().format, Format::kEdgeList);
  EXPECT_FALSE(file.header().weighted);
  EXPECT_FALSE(file.header().vertices.has_value());
  EXPECT_EQ(count(file, 3).vertices, 6u);
  EXPECT_EQ(count(file, 3).entries, 3u);
  expect_same_in_parts(file);
}

TEST(EdgeListFile, ReadsWeights) {
  const WrittenFile written("0 1 92\n2 1 -2.5e-1\n1 1 +7\n", ".wel");
  const GraphFile file(written.path());
  EXPECT_EQ(edges_of(file, 1), (Edges{{0, 1, 92}, {2, 1, -0.25}, {1, 1, 7}}));
  EXPECT_TRUE(file.header().weighted);
  expect_same_in_parts(file);
}

TEST(EdgeListFile, PartsKeepTheFilesOrder) {
  const WrittenFile written(long_edge_list(3000), ".el");
  const GraphFile file(written.path());
  const Edges whole = edges_of(file, 1);
  EXPECT_EQ(whole.size(), 3000u);
  for (const std::uint64_t parts : kPartCounts) EXPECT_EQ(edges_of(file, parts), whole);
}

TEST(EdgeListFile, PartsOfAPlainFileHaveNearlyTheSameSize) {
  const WrittenFile written(long_edge_list(3000), ".el");
  const GraphFile file(written.path());
  for (std::uint64_t p = 0; p < 3; ++p) {
    const EdgeCount part = file.for_each_edge({p, 3}, [](const Edge&) {});
    EXPECT_NEAR(static_cast<double>(part.entries), 1000, 100);  // early lines are shorter
  }
}

TEST(CompressedFile, HasTheEdgesOfThePlainOneInAnyParts) {
  const std::string text = long_edge_list(20000);  // more blocks than parts
  const WrittenFile plain(text, ".el");
  const WrittenFile compressed(gzip(text), ".el.gz");
  const GraphFile file(compressed.path());
  EXPECT_TRUE(file.header().compressed);
  EXPECT_EQ(edges_of(file, 1), edges_of(GraphFile(plain.path()), 1));
  expect_same_in_parts(file);
  for (std::uint64_t p = 0; p < 3; ++p) {
    EXPECT_GT(file.for_each_edge({p, 3}, [](const Edge&) {}).entries, 5000u);
  }
}

TEST(CompressedFile, MayHaveSeveralMembers) {
  const WrittenFile written(gzip("0 1\n1 ") + gzip("") + gzip("2\n3 4\n"), ".el.gz");
  const GraphFile file(written.path());
  EXPECT_EQ(edges_of(file, 1), (Edges{{0, 1, 1}, {1, 2, 1}, {3, 4, 1}}));
  expect_same_in_parts(file);
}

TEST(CompressedFile, KeepsTheHeaderOutOfTheParts) {
  const WrittenFile written(
      gzip("%%MatrixMarket matrix coordinate real general\n% c\n3 3 2\n1 2 0.5\n3 3 -1\n"), ".mtx.gz");
  const GraphFile file(written.path());
  EXPECT_EQ(edges_of(file, 1), (Edges{{0, 1, 0.5}, {2, 2, -1}}));
  expect_same_in_parts(file);
}

TEST(MatrixMarketFile, ReadsIntegersOfAGeneralMatrix) {
  const WrittenFile written(
      "%%MatrixMarket MATRIX Coordinate Integer General\n%\n\n3 3 3\n1 1 4\n"
      "% between entries\n3 1 -2\n2 3 +1\n",
      ".mtx");
  const GraphFile file(written.path());
  EXPECT_EQ(edges_of(file, 1), (Edges{{0, 0, 4}, {2, 0, -2}, {1, 2, 1}}));
  EXPECT_EQ(file.header().vertices, 3u);
  EXPECT_EQ(file.header().entries, 3u);
  EXPECT_EQ(file.header().symmetry, Symmetry::kGeneral);
  expect_same_in_parts(file);
}

TEST(MatrixMarketFile, VisitsSymmetricEntriesInBothDirectionsAndTheDiagonalOnce) {
  const WrittenFile written("%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 0.5\n3 3 8\n",
                            ".mtx");
  const GraphFile file(written.path());
  EXPECT_EQ(edges_of(file, 1), (Edges{{1, 0, 0.5}, {0, 1, 0.5}, {2, 2, 8}}));
  EXPECT_EQ(count(file, 2).entries, 2u);
  EXPECT_EQ(count(file, 2).edges, 3u);
  expect_same_in_parts(file);
}

TEST(MatrixMarketFile, NegatesTheOtherDirectionOfSkewSymmetricEntries) {
  const WrittenFile written("%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 1\n2 1 0.5\n", ".mtx");
  EXPECT_EQ(edges_of(GraphFile(written.path()), 1), (Edges{{1, 0, 0.5}, {0, 1, -0.5}}));
}

// Not what the format's paper says, but what programs write.
TEST(MatrixMarketFile, TakesSymmetricEntriesFromEitherTriangle) {
  const std::string banner = "%%MatrixMarket matrix coordinate real ";
  const WrittenFile upper(banner + "symmetric\n3 3 2\n1 2 0.5\n3 3 8\n", ".mtx");
  EXPECT_EQ(edges_of(GraphFile(upper.path()), 1), (Edges{{0, 1, 0.5}, {1, 0, 0.5}, {2, 2, 8}}));
  const WrittenFile skew(banner + "skew-symmetric\n3 3 1\n1 2 0.5\n", ".mtx");
  EXPECT_EQ(edges_of(GraphFile(skew.path()), 1), (Edges{{0, 1, 0.5}, {1, 0, -0.5}}));
}

TEST(MatrixMarketFile, TakesAPairThatBothTrianglesHaveForTwoEntries) {
  const WrittenFile written("%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 0.5\n1 2 7\n",
                            ".mtx");
  const GraphFile file(written.path());
  EXPECT_EQ(edges_of(file, 1), (Edges{{1, 0, 0.5}, {0, 1, 0.5}, {0, 1, 7}, {1, 0, 7}}));
  EXPECT_EQ(count(file, 2).entries, 2u);
  file.check(count(file, 2));
}

TEST(MatrixMarketFile, TakesABannerWithoutSymmetryForGeneral) {
  const WrittenFile written("%%MatrixMarket matrix coordinate pattern\n2 2 1\n1 2\n", ".mm");
  EXPECT_EQ(edges_of(GraphFile(written.path()), 1), (Edges{{0, 1, 1}}));
}

TEST(MatrixMarketFile, MayHaveNoEntries) {
  const WrittenFile written("%%MatrixMarket matrix coordinate pattern general\n5 5 0", ".mtx");
  const GraphFile file(written.path());
  EXPECT_TRUE(edges_of(file, 7).empty());
  EXPECT_NO_THROW(file.check(count(file, 7)));
}

TEST(MatrixMarketFile, ReadsTheKarateClub) {
  const GraphFile file(ESKER_TEST_GRAPHS "/karate.mtx");
  EXPECT_EQ(file.header().vertices, 34u);
  EXPECT_EQ(file.header().symmetry, Symmetry::kSymmetric);
  const EdgeCount total = count(file, 5);
  EXPECT_EQ(total.entries, 78u);
  EXPECT_EQ(total.edges, 156u);
  EXPECT_EQ(total.vertices, 34u);
  expect_same_in_parts(file);
}

TEST(MatrixMarketFile, ReadsACageMatrix) {
  const GraphFile file(ESKER_TEST_GRAPHS "/cage4.mtx");
  EXPECT_EQ(file.header().vertices, 9u);
  std::vector<double> column(9);
  for (const Edge& edge : edges_of(file, 3)) column[edge.to] += edge.weight;
  for (const double sum : column) EXPECT_NEAR(sum, 1, 1e-12);
  expect_same_in_parts(file);
}

TEST(SerializedFile, ReadsAnUndirectedGraph) {
  const SerializedBytes bytes{0, 4, 4, {0, 1, 1, 3, 4}, {2, 0, 3, 2}};
  const WrittenFile written(bytes.text(), ".sg");
  const GraphFile file(written.path());
  EXPECT_EQ(edges_of(file, 1), (Edges{{0, 2, 1}, {2, 0, 1}, {2, 3, 1}, {3, 2, 1}}));
  EXPECT_EQ(file.header().vertices, 4u);
  EXPECT_EQ(file.header().entries, 4u);
  EXPECT_EQ(file.header().symmetry, Symmetry::kSymmetric);
  expect_same_in_parts(file);
}

TEST(SerializedFile, LeavesTheIncomingEdgesOfADirectedGraph) {
  const SerializedBytes bytes{1, 2, 3, {0, 2, 2, 2}, {2, 1}};
  const WrittenFile written(bytes.text(), ".sg");
  const GraphFile file(written.path());
  EXPECT_EQ(edges_of(file, 1), (Edges{{0, 2, 1}, {0, 1, 1}}));
  EXPECT_EQ(file.header().symmetry, Symmetry::kGeneral);
  expect_same_in_parts(file);
}

TEST(SerializedFile, ReadsWeights) {
  const SerializedBytes bytes{0, 2, 2, {0, 1, 2}, {1, 50, 0, -50}};
  const WrittenFile written(bytes.text(), ".wsg");
  EXPECT_EQ(edges_of(GraphFile(written.path()), 1), (Edges{{0, 1, 50}, {1, 0, -50}}));
}

TEST(SerializedFile, MayBeLargerThanItsBuffers) {
  SerializedBytes bytes;
  bytes.vertices = 20000;
  bytes.offsets = {0};
  for (std::int64_t v = 0; v < bytes.vertices; ++v) {
    const std::int64_t degree = v == 9000 ? 20000 : v % 3;
    for (std::int64_t i = 0; i < degree; ++i) {
      bytes.ids.push_back(static_cast<std::int32_t>((v * 7 + i) % bytes.vertices));
    }
    bytes.offsets.push_back(static_cast<std::int64_t>(bytes.ids.size()));
  }
  bytes.neighbours = bytes.offsets.back();
  const WrittenFile written(bytes.text(), ".sg");
  const GraphFile file(written.path());
  const Edges edges = edges_of(file, 1);
  ASSERT_EQ(edges.size(), bytes.ids.size());
  std::size_t i = 0;
  for (std::uint64_t v = 0; v < 20000; ++v) {
    for (; i < static_cast<std::size_t>(bytes.offsets[v + 1]); ++i) {
      ASSERT_EQ(edges[i], (Edge{v, static_cast<std::uint64_t>(bytes.ids[i]), 1}));
    }
  }
  for (const std::uint64_t parts : kPartCounts) EXPECT_EQ(edges_of(file, parts), edges);
}

TEST(SerializedFile, MayHaveNoVertices) {
  const WrittenFile written(SerializedBytes{0, 0, 0, {0}, {}}.text(), ".sg");
  EXPECT_TRUE(edges_of(GraphFile(written.path()), 2).empty());
}

TEST(GraphFile, TakesAnyNumberForAWeightThatNobodyAsksFor) {
  const std::string banner = "%%MatrixMarket matrix coordinate ";
  const auto expect_ones = [](const std::string& bytes, const char* ending, const Edges& edges) {
    const WrittenFile written(bytes, ending);
    EXPECT_EQ(edges_of(GraphFile(written.path(), Weights::kIgnored), 1), edges);
    EXPECT_NE(reason([&] { count(GraphFile(written.path()), 1); }), "accepted");
  };
  expect_ones("0 1 inf\n1 2 nan\n2 0 1e999\n", ".wel", {{0, 1, 1}, {1, 2, 1}, {2, 0, 1}});
  expect_ones(banner + "integer general\n2 2 2\n1 2 9007199254740993\n2 1 +99999999999999999999\n", ".mtx",
              {{0, 1, 1}, {1, 0, 1}});
  expect_ones(banner + "real skew-symmetric\n2 2 1\n1 2 -inf\n", ".mtx", {{0, 1, 1}, {1, 0, 1}});
  const WrittenFile garbage("0 1 1\n1 2 1x\n", ".wel");
  EXPECT_EQ(reason([&] { count(GraphFile(garbage.path(), Weights::kIgnored), 1); }),
            garbage.path() + ":2: '1x' is not a number");
}

TEST(GraphFile, LetsTheVisitorsExceptionThrough) {
  const WrittenFile written("0 1\n", ".el");
  const GraphFile file(written.path());
  EXPECT_THROW(file.for_each_edge({0, 1}, [](const Edge&) { throw 7; }), int);
}

TEST(GraphFileDeathTest, PartsCountFromZero) {
  for (const char* name : {".el", ".el.gz"}) {
    const WrittenFile written(name == std::string(".el") ? "0 1\n" : gzip("0 1\n"), name);
    const GraphFile file(written.path());
    EXPECT_DEATH(file.for_each_edge({2, 2}, [](const Edge&) {}), "part 2 of 2: parts count from 0");
  }
}

}  // namespace
}  // namespace inputs::testing
