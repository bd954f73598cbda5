// Requests and replies of a job of processes, under mpirun.
#include <cstdio>

#include <gtest/gtest.h>

#include "operations.hpp"
#include "reach.hpp"
#include "requests.hpp"

namespace esker::testing {
namespace {

Runtime* runtime = nullptr;

TEST(RequestsOfAJob, GetsOfEverySizeBringTheWord) {
  check_gets<std::uint8_t>(*runtime, "get of 1 byte");
  check_gets<std::uint16_t>(*runtime, "get of 2 bytes");
  check_gets<float>(*runtime, "get of 4 bytes");
  check_gets<std::uint64_t>(*runtime, "get of 8 bytes");
  check_gets<Pair>(*runtime, "get of 16 bytes");
}

// After the gets above: to peers that are reached they do not travel.
TEST(RequestsOfAJob, GetsAreReadWhereTheHeapIsReached) {
  if (const auto expected = expected_reach()) {
    EXPECT_EQ(runtime->statistics().messages_direct > 0, *expected > 1);
  }
}

TEST(RequestsOfAJob, FetchesAreAppliedOnceAndOneAfterTheOther) {
  check_all_fetches<std::uint32_t>(*runtime, "u32");
  check_all_fetches<std::int64_t>(*runtime, "i64");
}

TEST(RequestsOfAJob, OneCompareSwapIsTheFirst) {
  check_compare_swaps<std::uint32_t>(*runtime);
  check_compare_swaps<std::uint64_t>(*runtime);
}

TEST(RequestsOfAJob, AContinuationRunsOnceWithItsValue) {
  check_continuations<std::uint8_t>(*runtime, "continuation of 1 byte");
  check_continuations<std::uint32_t>(*runtime, "continuation of 4 bytes");
  check_continuations<std::uint64_t>(*runtime, "continuation of 8 bytes");
  check_continuations<Pair>(*runtime, "continuation of 16 bytes");
}

TEST(RequestsOfAJob, AContinuationMayAskAgain) { check_compare_swap_loops(*runtime); }

}  // namespace
}  // namespace esker::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  esker::Runtime runtime(argc, argv);
  esker::testing::runtime = &runtime;
  // A check that fails on one PE goes on, so that the others' calls find theirs; all hear of it.
  std::uint64_t failed[] = {static_cast<std::uint64_t>(RUN_ALL_TESTS())};
  runtime.all_reduce(std::span<std::uint64_t>(failed), esker::Reduction::kMax);
  return static_cast<int>(failed[0]);
}
