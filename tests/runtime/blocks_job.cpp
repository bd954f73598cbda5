// Blocks of a job of processes, under mpirun.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "blocks.hpp"
#include "reach.hpp"

namespace esker::testing {
namespace {

Runtime* runtime = nullptr;

// A frame of the settings as they come holds 65 408 bytes.
TEST(BlocksOfAJob, PutsOfAnySizeArriveWhole) {
  for (const std::uint64_t size : {0, 1, 7, 65'408, 65'409, 3'000'000}) check_puts(*runtime, size);
}

TEST(BlocksOfAJob, GetsOfAnySizeAreThereAfterQuiet) {
  for (const std::uint64_t size : {0, 1, 7, 65'408, 65'409, 1'000'000}) check_block_gets(*runtime, size);
}

TEST(BlocksOfAJob, PiecesLieAsTheirStridesSay) {
  check_pieces(*runtime, {1, 50'000, 3, 2});
  check_pieces(*runtime, {300, 700, 301, 1000});
}

TEST(BlocksOfAJob, OfGroupsOfLanesArriveWhole) { check_blocks_of_groups(*runtime, 100'003, 8); }

// Each PE finds by loads what its peers have, and they what it stores.
TEST(BlocksOfAJob, PointersLeadIntoPeersHeaps) {
  Runtime& rt = *runtime;
  const auto own = rt.heap().allocate<std::uint64_t>(3);
  const auto from = rt.heap().allocate<std::uint64_t>(rt.n_pes());
  own[2] = 100 + rt.pe();
  rt.barrier_all();
  EXPECT_EQ(rt.ptr(&own[2], rt.pe()), &own[2]);
  std::vector<bool> reached(rt.n_pes());
  for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe) {
    const std::uint64_t* const there = rt.ptr(&own[2], pe);
    if (there == nullptr) continue;
    EXPECT_EQ(*there, 100 + pe);
    *rt.ptr(&from[rt.pe()], pe) = 1 + rt.pe();
    reached[pe] = true;
  }
  if (const auto expected = expected_reach()) {
    EXPECT_EQ(std::count(reached.begin(), reached.end(), true), *expected);
  }
  // Whom it reaches it has told by a store; here it tells all by messages.
  const auto told = rt.heap().allocate<std::uint64_t>(rt.n_pes());
  for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe)
    rt.put(&told[rt.pe()], reached[pe] ? std::uint64_t{1} + rt.pe() : 0, pe);
  rt.barrier_all();
  EXPECT_EQ(rt.heap().read(from), rt.heap().read(told));
}

TEST(BlocksOfAJob, TravelBesideMessages) { check_beside_messages(*runtime); }

// For three times as long as a hang is waited for.
TEST(BlocksOfAJob, ThatAreCopiedForLongAreNoHang) {
  using std::chrono::steady_clock;
  Runtime& rt = *runtime;
  if (rt.config().hang_seconds != 1) GTEST_SKIP() << "needs --hang-seconds 1";
  const auto heap = rt.heap().allocate<std::uint8_t>(16 << 20);
  const std::vector<std::uint8_t> source(heap.size(), 1);
  if (rt.pe() == 0) {
    steady_clock::duration once{};
    for (int i = 0; i < 2; ++i) {  // the first meets pages that nobody has touched
      const auto begin = steady_clock::now();
      rt.put_block(heap.data(), source.data(), source.size(), 1);
      rt.quiet();
      once = steady_clock::now() - begin;
    }
    const auto enough = std::min<std::int64_t>(std::chrono::seconds{3} / once + 1, 10'000);
    for (std::int64_t i = 0; i < enough; ++i) rt.put_block(heap.data(), source.data(), source.size(), 1);
  }
  rt.barrier_all();
  rt.heap().free(heap);
}

}  // namespace
}  // namespace esker::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  esker::Runtime runtime(argc, argv);
  esker::testing::runtime = &runtime;
  // As requests_job.
  std::uint64_t failed[] = {static_cast<std::uint64_t>(RUN_ALL_TESTS())};
  runtime.all_reduce(std::span<std::uint64_t>(failed), esker::Reduction::kMax);
  return static_cast<int>(failed[0]);
}
