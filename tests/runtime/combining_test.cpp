// Calls that travel in another call's message. For the CPU alone: lanes on a GPU send each call.
#include <cstdint>

#include <gtest/gtest.h>

#include "pes.hpp"

namespace esker::testing {
namespace {

constexpr std::uint64_t kLanes = 20'000;

std::uint64_t calls_of(const Statistics& s) {
  return s.messages_published + s.combined_local + s.combined_remote;
}

TEST(Combining, FewWordsTakeFewMessages) {
  run_pes(2, [](Runtime& rt) {
    const auto sums = rt.heap().allocate<std::int64_t>(5);
    const auto lows = rt.heap().allocate<float>(5);
    rt.launch(kLanes, [=](WorkItem item) {
      const std::uint64_t id = item.global_id();
      shmem_add(item, &sums[id % 5], static_cast<std::int64_t>(id), static_cast<std::uint32_t>(id % 2));
      shmem_min(item, &lows[id % 5], -static_cast<float>(id % 1000), 1);
    });
    rt.barrier_all();
    const Statistics s = rt.statistics();
    EXPECT_EQ(calls_of(s), 2 * kLanes);
    EXPECT_LT(s.messages_published, 1000u);
    EXPECT_EQ(s.combined_local + s.messages_local, rt.pe() == 0 ? kLanes / 2 : kLanes / 2 + kLanes);
    std::int64_t sum = 0;
    for (const std::int64_t one : sums) sum += one;
    // Even ids go to PE 0, odd ones to PE 1, from both PEs.
    const auto half = static_cast<std::int64_t>(kLanes / 2);
    EXPECT_EQ(sum, 2 * (half * (half - 1) + (rt.pe() == 1 ? half : 0)));
    for (std::uint64_t w = 0; w < 5; ++w) {
      EXPECT_EQ(lows[w], rt.pe() == 1 ? -static_cast<float>(995 + w) : 0.0f);
    }
  });
}

// What a long kernel adds to one word arrives while it runs.
TEST(Combining, PackagesLeaveAllTheSame) {
  run_pes(1, [](Runtime& rt) {
    const auto word = rt.heap().allocate<std::uint64_t>(1);
    rt.launch(20 * kLanes, [=](WorkItem item) { shmem_add(item, word.data(), 1, 0); });
    rt.barrier_all();
    EXPECT_EQ(word[0], 20 * kLanes);
    EXPECT_GE(rt.statistics().packages, 6u);  // of 1 KiB: 63 columns, 1024 calls for each
  });
}

// A lane thread that stops looking looks again, and finds what it did not before.
TEST(Combining, LooksAgainAfterWordsThatHadNoOther) {
  run_pes(1, [](Runtime& rt) {
    const auto words = rt.heap().allocate<std::uint64_t>(kLanes);
    rt.launch(kLanes, [=](WorkItem item) { shmem_add(item, &words[item.global_id()], 1, 0); });
    rt.barrier_all();
    const Statistics apart = rt.statistics();
    EXPECT_EQ(apart.messages_published, kLanes);
    for (int i = 0; i < 20; ++i) {
      rt.launch(kLanes, [=](WorkItem item) { shmem_add(item, &words[item.global_id() % 3], 1, 0); });
      rt.barrier_all();
    }
    const Statistics s = rt.statistics();
    EXPECT_EQ(calls_of(s), 21 * kLanes);
    EXPECT_GT(s.combined_local, 10 * kLanes);
    EXPECT_EQ(words[0] + words[1] + words[2], 3 + 20 * kLanes);
  });
}

// Two commands on one word, and what has no value to add to, keep their messages apart.
TEST(Combining, OnlyTheSameOperationOnTheSameWord) {
  run_pes(1, [](Runtime& rt) {
    const auto words = rt.heap().allocate<std::uint64_t>(2);
    rt.launch(kLanes, [=](WorkItem item) {
      const std::uint64_t bit = std::uint64_t{1} << (item.global_id() % 40);
      shmem_or(item, &words[0], bit, 0);
      shmem_add(item, &words[1], bit, 0);
      shmem_inc(item, &words[1], 0);
    });
    rt.barrier_all();
    std::uint64_t sum = kLanes;
    for (std::uint64_t id = 0; id < kLanes; ++id) sum += std::uint64_t{1} << (id % 40);
    EXPECT_EQ(words[0], (std::uint64_t{1} << 40) - 1);
    EXPECT_EQ(words[1], sum);
    EXPECT_GE(rt.statistics().messages_published, kLanes);  // the increments
    EXPECT_EQ(calls_of(rt.statistics()), 3 * kLanes);
  });
}

}  // namespace
}  // namespace esker::testing
