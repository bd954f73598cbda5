// Where k-mers are counted: locations against their definition, and back.
#include <esker/apps/mer/locator.hpp>

#include <cstdint>
#include <random>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

namespace mer {
namespace {

template <class Word>
void expect_location(const Locator<Word>& locator, Word kmer, std::uint32_t pe, std::uint64_t bucket,
                     Word rest) {
  const Location<Word> location = locator.of(kmer);
  EXPECT_EQ(location.pe, pe);
  EXPECT_EQ(location.bucket, bucket);
  EXPECT_TRUE(location.rest == rest);
  EXPECT_TRUE(locator.kmer(pe, bucket, rest) == kmer);
}

/// `count` random k-mers, and the least and the greatest: each comes back, and its rest is short enough.
template <class Word>
void expect_all_come_back(unsigned k, std::uint32_t pes, std::uint64_t buckets, unsigned rest_bits) {
  const Locator<Word> locator(k, pes, buckets);
  const Word mask = inputs::kmer_mask<Word>(k);
  std::mt19937_64 random(k);
  for (int i = 0; i < 1000; ++i) {
    Word kmer = i == 0 ? 0 : i == 1 ? mask : static_cast<Word>(random());
    if (i > 1) kmer = static_cast<Word>((kmer << (sizeof(Word) * 4)) ^ random()) & mask;
    const Location<Word> location = locator.of(kmer);
    ASSERT_LT(location.pe, pes);
    ASSERT_LT(location.bucket, buckets);
    ASSERT_TRUE(location.rest >> rest_bits == 0) << "k-mer " << i << " of k " << k;
    ASSERT_TRUE(locator.kmer(location.pe, location.bucket, location.rest) == kmer)
        << "k-mer " << i << " of k " << k;
  }
}

// The numbers are a Python program's, which has integers of any length.
TEST(Locator, AreTheFractionsThatTheInvariantNames) {
  const Locator<std::uint64_t> few(3, 2, 8);
  expect_location<std::uint64_t>(few, 0, 0, 0, 0);
  expect_location<std::uint64_t>(few, 1, 0, 7, 0);
  expect_location<std::uint64_t>(few, 2, 1, 4, 1);
  expect_location<std::uint64_t>(few, 27, 0, 1, 3);
  expect_location<std::uint64_t>(few, 63, 0, 0, 3);
  expect_location<std::uint64_t>({31, 3, 1000}, 0x123456789abcdef, 1, 284, 0x6c933932735c6);
  expect_location<std::uint64_t>({31, 7, 1 << 28}, 0x3fffffffffffffff, 3, 30609080, 0xab88beb6);
  expect_location<inputs::Wide>({63, 5, 1 << 20},
                                static_cast<inputs::Wide>(0x2468acf13579bd) << 64 | 0xe2468ace13579bdf, 1,
                                922802, static_cast<inputs::Wide>(0xea4214555d) << 64 | 0xddb88abf880f3b61);
}

TEST(Locator, AreDifferentForDifferentKmers) {
  const Locator<std::uint64_t> locator(3, 2, 8);  // 64 k-mers in 16 buckets
  std::set<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>> taken;
  for (std::uint64_t kmer = 0; kmer < 64; ++kmer) {
    const auto [pe, bucket, rest] = locator.of(kmer);
    EXPECT_LT(rest, 4u);
    EXPECT_TRUE(taken.emplace(pe, bucket, rest).second) << kmer;
    EXPECT_EQ(locator.kmer(pe, bucket, rest), kmer);
  }
  EXPECT_EQ(taken.size(), 2u * 8 * 4);
}

TEST(Locator, ComeBackWhateverTheBuckets) {
  expect_all_come_back<std::uint64_t>(3, 1, 16, 2);
  expect_all_come_back<std::uint64_t>(3, 3, 30, 0);  // more buckets than k-mers
  expect_all_come_back<std::uint64_t>(5, 3, 7, 6);
  expect_all_come_back<std::uint64_t>(21, 8, 4096, 27);
  expect_all_come_back<std::uint64_t>(31, 3, 1001, 51);
  expect_all_come_back<std::uint64_t>(31, 1, std::uint64_t{1} << 32, 30);
  expect_all_come_back<inputs::Wide>(33, 5, 12345, 51);
  expect_all_come_back<inputs::Wide>(63, 7, 613566756, 95);  // 2^32 - 4
}

TEST(Locator, AreFromSixteenBucketsToTwoToTheThirtyTwo) {
  EXPECT_THROW((Locator<std::uint64_t>(21, 3, 5)), esker::Error);
  EXPECT_THROW((Locator<std::uint64_t>(21, 2, (std::uint64_t{1} << 31) + 1)), esker::Error);
  EXPECT_NO_THROW((Locator<std::uint64_t>(21, 4, 4)));
  EXPECT_NO_THROW((Locator<std::uint64_t>(21, 2, std::uint64_t{1} << 31)));
}

}  // namespace
}  // namespace mer
