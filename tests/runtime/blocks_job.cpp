// Blocks of a job of processes, under mpirun.
#include <gtest/gtest.h>

#include "blocks.hpp"

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

TEST(BlocksOfAJob, TravelBesideMessages) { check_beside_messages(*runtime); }

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
