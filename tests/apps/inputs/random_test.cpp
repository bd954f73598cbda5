// Random words: published ones, and streams that are unrelated.
#include <esker/apps/inputs/random.hpp>

#include <cstdint>
#include <set>

#include <gtest/gtest.h>

namespace inputs {
namespace {

TEST(RandomStream, HasTheWordsOfSplitMix64) {
  constexpr RandomStream kOfSeed0{kStep};
  EXPECT_EQ(kOfSeed0[0], 0xe220a8397b1dcdafu);
  EXPECT_EQ(kOfSeed0[1], 0x6e789e6aa1b965f4u);
  EXPECT_EQ(kOfSeed0[2], 0x06c45d188009454fu);
}

TEST(Random, StreamsAndSeedsDiffer) {
  std::set<std::uint64_t> words;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (std::uint64_t stream = 0; stream < 20; ++stream) {
      for (std::uint64_t i = 0; i < 20; ++i) words.insert(Random(seed)(stream, i));
    }
  }
  EXPECT_EQ(words.size(), 8000u);
}

// What generators have made stays what they make: graphs, genomes and points are known by their seeds.
TEST(Random, WordsStayAsTheyAre) {
  EXPECT_EQ(Random(27)(3, 5), 0x84aa479186beef0cu);
  EXPECT_EQ(Random(1)(0, 0), 0xa7ed8821dca10c0eu);
}

TEST(Random, ScaledWordsAreBelowTheirBoundAndReachIt) {
  EXPECT_EQ(scaled(0, 10), 0u);
  EXPECT_EQ(scaled(~std::uint64_t{0}, 10), 9u);
  EXPECT_EQ(scaled(std::uint64_t{1} << 63, 10), 5u);
  EXPECT_EQ(chance(0), 0u);
  EXPECT_EQ(chance(0.25), std::uint64_t{1} << 62);
  EXPECT_EQ(chance(1), ~std::uint64_t{0});
  EXPECT_GT(unit(0), 0);
  EXPECT_LT(unit(~std::uint64_t{0}), 1);
}

}  // namespace
}  // namespace inputs
