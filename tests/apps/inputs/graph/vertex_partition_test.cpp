// Partitions are bijections with even counts, and METIS cuts fewer edges than a hash.
#include <gtest/gtest.h>
#include <esker/apps/inputs/graph/bubble_mesh.hpp>
#include <esker/apps/inputs/graph/metis_owners.hpp>
#include <esker/apps/inputs/graph/vertex_partition.hpp>
#include <esker/error.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace inputs::testing {
namespace {

using Owner = VertexPartition::Owner;

void expect_bijection(const VertexPartition& partition) {
  std::uint64_t sum = 0;
  for (Owner o = 0; o < partition.owners(); ++o) {
    sum += partition.count(o);
    for (std::uint64_t i = 0; i < partition.count(o); ++i) {
      const std::uint64_t v = partition.global_id(o, i);
      ASSERT_LT(v, partition.vertices());
      ASSERT_EQ(partition.owner(v), o);
      ASSERT_EQ(partition.local_index(v), i);
    }
  }
  EXPECT_EQ(sum, partition.vertices());  // so every vertex was met, once
}

void expect_even(const VertexPartition& partition) {
  const std::uint64_t least = partition.vertices() / partition.owners();
  for (Owner o = 0; o < partition.owners(); ++o) {
    EXPECT_GE(partition.count(o), least);
    EXPECT_LE(partition.count(o), least + 1);
  }
}

TEST(VertexPartition, BlocksAndHashesAreEvenBijections) {
  for (const std::uint64_t vertices : {0u, 1u, 2u, 7u, 100u, 1000u, 4099u}) {
    for (const Owner owners : {1u, 2u, 3u, 7u, 64u, 1000u}) {
      const VertexPartition block = VertexPartition::block(vertices, owners);
      const VertexPartition hash = VertexPartition::hash(vertices, owners, 5);
      expect_bijection(block);
      expect_bijection(hash);
      expect_even(block);
      expect_even(hash);
    }
  }
}

TEST(VertexPartition, BlocksAreConsecutive) {
  const VertexPartition partition = VertexPartition::block(10, 3);
  std::vector<Owner> owners;
  for (std::uint64_t v = 0; v < 10; ++v) owners.push_back(partition.owner(v));
  EXPECT_EQ(owners, (std::vector<Owner>{0, 0, 0, 1, 1, 1, 2, 2, 2, 2}));
}

TEST(VertexPartition, BlocksReachTheLargestGraphs) {
  const std::uint64_t vertices = std::uint64_t{1} << 62;
  for (const VertexPartition& partition :
       {VertexPartition::block(vertices, 1000), VertexPartition::hash(vertices, 1000, 1)}) {
    for (const std::uint64_t v : {std::uint64_t{0}, vertices / 3, vertices - 1}) {
      EXPECT_EQ(partition.global_id(partition.owner(v), partition.local_index(v)), v);
    }
  }
}

TEST(VertexPartition, TablesGiveWhatTheySay) {
  const std::vector<Owner> owners{2, 0, 2, 2, 0, 3};
  const VertexPartition partition = VertexPartition::table(owners, 5);
  expect_bijection(partition);
  for (std::uint64_t v = 0; v < owners.size(); ++v) EXPECT_EQ(partition.owner(v), owners[v]);
  EXPECT_EQ(partition.count(2), 3u);
  EXPECT_EQ(partition.count(4), 0u);
  EXPECT_EQ(partition.global_id(2, 1), 2u);
}

TEST(VertexPartition, RefusesOwnersOutOfRange) {
  EXPECT_THROW(VertexPartition::table({0, 5}, 5), esker::Error);
  EXPECT_THROW(VertexPartition::block(10, 0), esker::Error);
}

EdgeCut cut_of(const BubbleMesh& mesh, const VertexPartition& partition, std::uint64_t parts) {
  EdgeCut total;
  for (std::uint64_t p = 0; p < parts; ++p) {
    EdgeCut cut;
    mesh.for_each_edge({p, parts}, [&](const Edge& edge) { cut.add(partition, edge); });
    total += cut;
  }
  return total;
}

TEST(EdgeCut, IsSummedOverParts) {
  const BubbleMesh mesh(8, 8, 1);
  const VertexPartition hash = VertexPartition::hash(mesh.vertices(), 4, 1);
  const VertexPartition block = VertexPartition::block(mesh.vertices(), 4);
  EXPECT_EQ(cut_of(mesh, hash, 1).cut, cut_of(mesh, hash, 7).cut);
  EXPECT_EQ(cut_of(mesh, hash, 7).edges, mesh.edges());
  EXPECT_NEAR(cut_of(mesh, hash, 1).fraction(), 0.75, 0.02);  // 3 of 4 ends lie elsewhere
  EXPECT_LT(cut_of(mesh, block, 1).fraction(), 0.02);
  EXPECT_EQ(cut_of(mesh, VertexPartition::block(mesh.vertices(), 1), 1).fraction(), 0);
  EXPECT_EQ(EdgeCut{}.fraction(), 0);
}

#if ESKER_TEST_METIS

TEST(MetisOwners, AreEvenAndCutFewEdges) {
  const BubbleMesh mesh(8, 8, 1);
  const EdgeStream all = [&](const EdgeVisitor& visit) { mesh.for_each_edge({}, visit); };
  const std::vector<Owner> owners = metis_owners(mesh.vertices(), 7, 42, all);
  EXPECT_EQ(metis_owners(mesh.vertices(), 7, 42, all), owners);
  const VertexPartition partition = VertexPartition::table(owners, 7);
  expect_bijection(partition);
  for (Owner o = 0; o < 7; ++o) {
    EXPECT_NEAR(static_cast<double>(partition.count(o)), static_cast<double>(mesh.vertices()) / 7,
                0.04 * static_cast<double>(mesh.vertices()) / 7);
  }
  EXPECT_LT(cut_of(mesh, partition, 1).fraction(), 0.03);
}

TEST(MetisOwners, TakeLoopsDuplicatesAndAnyDirection) {
  const EdgeStream edges = [](const EdgeVisitor& visit) {
    for (std::uint64_t v = 0; v < 100; ++v) {
      visit({v, v, 1});
      visit({v, (v + 1) % 100, 1});
      visit({(v + 1) % 100, v, 1});
      visit({v, (v + 1) % 100, 1});
    }
  };
  const VertexPartition partition = VertexPartition::table(metis_owners(100, 2, 1, edges), 2);
  expect_bijection(partition);
  EdgeCut cut;
  edges([&](const Edge& edge) { cut.add(partition, edge); });
  EXPECT_EQ(cut.cut, 2u * 3);  // a ring is cut at two places
}

TEST(MetisOwners, DivideWhatHasNothingToCut) {
  const EdgeStream none = [](const EdgeVisitor&) {};
  const EdgeStream one = [](const EdgeVisitor& visit) { visit({0, 2, 1}); };
  EXPECT_EQ(metis_owners(4, 2, 1, none), (std::vector<Owner>{0, 0, 1, 1}));
  EXPECT_EQ(metis_owners(3, 1, 1, one), (std::vector<Owner>{0, 0, 0}));
  EXPECT_EQ(metis_owners(3, 3, 1, one), (std::vector<Owner>{0, 1, 2}));
  EXPECT_TRUE(metis_owners(0, 5, 1, none).empty());
}

TEST(MetisOwners, RefuseStreamsThatAreWrong) {
  const EdgeStream outside = [](const EdgeVisitor& visit) { visit({0, 4, 1}); };
  EXPECT_THROW(metis_owners(4, 2, 1, outside), esker::Error);
  for (const int first : {1, 3}) {
    int calls = 0;
    const EdgeStream changing = [&](const EdgeVisitor& visit) {
      const int edges = calls++ == 0 ? first : 2;
      for (int i = 0; i < edges; ++i) visit({0, 1, 1});
    };
    EXPECT_THROW(metis_owners(4, 2, 1, changing), esker::Error);
  }
  EXPECT_THROW(metis_owners(std::uint64_t{1} << 40, 2, 1, outside), esker::Error);
  EXPECT_THROW(metis_owners(4, 0, 1, outside), esker::Error);
}

#else

TEST(MetisOwners, AreAnErrorInABuildWithoutMetis) {
  try {
    metis_owners(4, 2, 1, [](const EdgeVisitor&) {});
    ADD_FAILURE() << "no error";
  } catch (const esker::Error& error) {
    EXPECT_NE(std::string(error.what()).find("-DESKER_METIS=ON"), std::string::npos);
  }
}

#endif

}  // namespace
}  // namespace inputs::testing
