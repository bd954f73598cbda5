// Block and cyclic distributions: every element has one owner, and comes back.
#include <esker/containers/distribution.hpp>

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace esker::containers {
namespace {

template <class Distribution>
void expect_partition(std::uint64_t size, std::uint32_t pes) {
  const Distribution distribution(size, pes);
  EXPECT_EQ(distribution.size(), size);
  std::vector<std::vector<bool>> seen(pes);
  std::uint64_t counted = 0;
  for (std::uint32_t pe = 0; pe < pes; ++pe) {
    EXPECT_LE(distribution.count(pe), distribution.most());
    seen[pe].resize(distribution.count(pe));
    counted += distribution.count(pe);
  }
  EXPECT_EQ(counted, size);
  for (std::uint64_t i = 0; i < size; ++i) {
    const Place at = distribution.place(i);
    ASSERT_LT(at.pe, pes) << "element " << i << " of " << size << " on " << pes;
    ASSERT_LT(at.index, distribution.count(at.pe)) << "element " << i << " of " << size << " on " << pes;
    EXPECT_FALSE(seen[at.pe][at.index]);
    seen[at.pe][at.index] = true;
    EXPECT_EQ(distribution.owner(i), at.pe);
    EXPECT_EQ(distribution.local_index(i), at.index);
    EXPECT_EQ(distribution.global_index(at.pe, at.index), i);
  }
}

template <class Distribution>
class Distributions : public ::testing::Test {};
using Kinds = ::testing::Types<Block, Cyclic>;
TYPED_TEST_SUITE(Distributions, Kinds);

TYPED_TEST(Distributions, GiveEachElementOneOwnerAndItComesBack) {
  for (const std::uint64_t size : {0u, 1u, 2u, 3u, 7u, 8u, 9u, 64u, 100u})
    for (const std::uint32_t pes : {1u, 2u, 3u, 4u, 7u, 8u}) expect_partition<TypeParam>(size, pes);
}

TYPED_TEST(Distributions, CountTheMostThatAPeHasForAnySize) {
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  EXPECT_EQ(TypeParam(kMost, 1).most(), kMost);
  EXPECT_EQ(TypeParam(kMost, 2).most(), kMost / 2 + 1);
  EXPECT_EQ(TypeParam(kMost - 1, 2).most(), kMost / 2);
}

TEST(Block, KeepsNeighboursTogether) {
  const Block block(10, 4);  // 3, 3, 3, 1
  EXPECT_EQ(block.owner(2), 0u);
  EXPECT_EQ(block.owner(3), 1u);
  EXPECT_EQ(block.local_index(9), 0u);
  EXPECT_EQ(block.count(3), 1u);
}

TEST(Cyclic, DealsElementsOutOneByOne) {
  const Cyclic cyclic(10, 4);
  EXPECT_EQ(cyclic.owner(6), 2u);
  EXPECT_EQ(cyclic.local_index(6), 1u);
  EXPECT_EQ(cyclic.count(1), 3u);
  EXPECT_EQ(cyclic.count(2), 2u);
}

}  // namespace
}  // namespace esker::containers
