// The cage model against its published sizes and against files of two small matrices.
#include <gtest/gtest.h>
#include <esker/apps/inputs/graph/cage.hpp>
#include <esker/apps/inputs/graph/graph_file.hpp>
#include <esker/error.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "collected.hpp"

namespace inputs::testing {
namespace {

TEST(Cage, HasThePublishedSizes) {
  struct Size {
    unsigned monomers;
    std::uint64_t vertices, edges;
  };
  for (const Size size :
       {Size{3, 5, 19}, Size{4, 9, 49}, Size{5, 37, 233}, Size{6, 93, 785}, Size{7, 340, 3084},
        Size{8, 1015, 11003}, Size{9, 3534, 41594}, Size{10, 11397, 150645}}) {
    const Cage cage(size.monomers);
    std::uint64_t edges = 0;
    std::vector<double> column(cage.vertices());
    cage.for_each_edge({}, [&](const Edge& edge) {
      ++edges;
      column.at(edge.to) += edge.weight;
    });
    EXPECT_EQ(cage.vertices(), size.vertices) << size.monomers;
    EXPECT_EQ(edges, size.edges) << size.monomers;
    for (const double sum : column) ASSERT_NEAR(sum, 1, 1e-12);
  }
}

TEST(Cage, DoesNotDependOnTheParts) {
  const Cage cage(7);
  const std::vector<Edge> whole = edges_of(cage, 1);
  for (const std::uint64_t parts : kPartCounts) EXPECT_EQ(edges_of(cage, parts), whole);
}

// The files come from another program with the same order of states.
TEST(Cage, HasTheEntriesOfTheFiles) {
  for (const unsigned monomers : {3u, 4u}) {
    const GraphFile file(ESKER_TEST_GRAPHS "/cage" + std::to_string(monomers) + ".mtx");
    const std::vector<Edge> expected = sorted(file, 1);
    const std::vector<Edge> made = sorted(Cage(monomers), 1);
    ASSERT_EQ(made.size(), expected.size());
    for (std::size_t i = 0; i < made.size(); ++i) {
      EXPECT_EQ(made[i].from, expected[i].from);
      EXPECT_EQ(made[i].to, expected[i].to);
      EXPECT_NEAR(made[i].weight, expected[i].weight, 1e-15);
    }
  }
}

TEST(Cage, RefusesLengthsOutOfRange) {
  EXPECT_THROW(Cage(2), esker::Error);
  EXPECT_THROW(Cage(19), esker::Error);
}

}  // namespace
}  // namespace inputs::testing
