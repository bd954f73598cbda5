// Open packages of a group: what opens, completes and closes them, lane by lane.
#include <gtest/gtest.h>

#include <cstdint>
#include <type_traits>
#include <vector>

#include <esker/device/group_blocks.hpp>
#include <esker/device/lane_group.hpp>

namespace esker {
namespace {

using Blocks = GroupBlocks<2, 3>;
constexpr std::uint32_t kBlockWords = 8;

struct Fixture : ::testing::Test {
  struct Pool {
    std::uint64_t* all;
    std::uint64_t* words(std::uint32_t block) const { return all + block * kBlockWords; }
    static constexpr std::uint32_t block_words() { return kBlockWords; }
  };
  static constexpr std::integral_constant<std::uint32_t, 2> kWidth{};
  static std::uint32_t most(std::uint32_t, std::uint32_t) { return ~0u; }

  /// What a lane does once, without the waiting.
  Blocks::Attempt append(std::uint32_t bin, std::uint32_t command, std::uint64_t word) {
    const std::uint64_t words[2] = {word, 10 * word};
    const auto attempt = blocks.try_append(pool, bin, command, kWidth, words);
    return attempt.left ? blocks.make_way(pool, bin, command, kWidth, words, most) : attempt;
  }
  /// Rows of a complete block's messages.
  std::vector<std::vector<std::uint64_t>> flush(std::uint32_t index) {
    std::vector<std::vector<std::uint64_t>> rows(2, std::vector<std::uint64_t>(kBlockWords));
    const std::uint32_t count =
        blocks.copy(pool, LoneLane{}, {0, 1, 0}, index, [&](std::uint32_t r) { return rows[r].data(); });
    for (auto& row : rows) row.resize(count);
    blocks.release(index);
    return rows;
  }

  Blocks blocks{};
  std::uint64_t memory[3 * kBlockWords] = {};
  Pool pool{memory};
};
using GroupBlocksTest = Fixture;

TEST_F(GroupBlocksTest, CompletesAPackageWithItsLastColumn) {
  for (std::uint64_t m = 1; m <= 3; ++m) EXPECT_TRUE(append(0, 7, m).is_over());
  const auto last = append(0, 7, 4);
  EXPECT_FALSE(last.left);
  ASSERT_NE(last.complete, Blocks::kNone);
  const Blocks::Block& block = blocks.block(last.complete);
  EXPECT_EQ(block.command, 7u);
  EXPECT_EQ(block.width, 2u);
  EXPECT_EQ(block.bin, 0u);
  // Columns are given out from the last to the first.
  EXPECT_EQ(flush(last.complete), (std::vector<std::vector<std::uint64_t>>{{4, 3, 2, 1}, {40, 30, 20, 10}}));
}

TEST_F(GroupBlocksTest, ClosesThePackageOfAnotherCommand) {
  EXPECT_TRUE(append(0, 7, 1).is_over());
  const auto other = append(0, 8, 2);
  EXPECT_TRUE(other.left);
  ASSERT_NE(other.complete, Blocks::kNone);
  EXPECT_EQ(flush(other.complete), (std::vector<std::vector<std::uint64_t>>{{1}, {10}}));
  EXPECT_TRUE(append(0, 8, 2).is_over());
}

// Lanes with different commands that take turns at every step: without a column for whoever opens they would
// close each other's empty blocks for ever.
TEST_F(GroupBlocksTest, EachOpeningBringsAMessageOnItsWay) {
  const std::uint64_t words[2] = {1, 10};
  for (std::uint32_t turn = 0; turn < 100; ++turn) {
    const auto opened = blocks.make_way(pool, 0, turn, kWidth, words, most);
    EXPECT_TRUE(opened.is_over());
    const auto closed = blocks.make_way(pool, 0, turn + 1, kWidth, words, most);
    EXPECT_TRUE(closed.left);
    ASSERT_NE(closed.complete, Blocks::kNone);
    EXPECT_FALSE(Blocks::is_empty(blocks.block(closed.complete)));
    EXPECT_EQ(flush(closed.complete)[0], std::vector<std::uint64_t>{1});
  }
}

TEST_F(GroupBlocksTest, CompletesABlockOfOneColumnByOpeningIt) {
  const auto one = [](std::uint32_t, std::uint32_t) { return 1u; };
  const std::uint64_t words[2] = {1, 10};
  const auto attempt = blocks.make_way(pool, 0, 7, kWidth, words, one);
  EXPECT_FALSE(attempt.left);
  ASSERT_NE(attempt.complete, Blocks::kNone);
  EXPECT_EQ(flush(attempt.complete)[0], std::vector<std::uint64_t>{1});
  EXPECT_EQ(blocks.close(0), Blocks::kNone);
}

TEST_F(GroupBlocksTest, KeepsBinsApart) {
  EXPECT_TRUE(append(0, 7, 1).is_over());
  EXPECT_TRUE(append(1, 7, 2).is_over());
  EXPECT_EQ(flush(blocks.close(1)), (std::vector<std::vector<std::uint64_t>>{{2}, {20}}));
  EXPECT_EQ(flush(blocks.close(0)), (std::vector<std::vector<std::uint64_t>>{{1}, {10}}));
  EXPECT_EQ(blocks.close(0), Blocks::kNone);
}

TEST_F(GroupBlocksTest, LeavesOutVoidColumns) {
  EXPECT_TRUE(append(0, 7, 1).is_over());
  // As a lane that has looked at the opening before: it takes a column of this one, for another command.
  EXPECT_TRUE(append(0, 7, 2).is_over());
  const std::uint64_t words[2] = {3, 30};
  const std::uint32_t index = 0;
  const auto taken = 1u << 22 | index << 16 | ((1u << 13) + 2);  // opening 1, two columns left
  const auto attempt = blocks.write_there(pool, 0, 8, kWidth, words, taken);
  EXPECT_TRUE(attempt.left);
  EXPECT_EQ(attempt.complete, Blocks::kNone);
  EXPECT_EQ(blocks.block(index).voids.load_relaxed(), 1u);
  EXPECT_FALSE(Blocks::is_empty(blocks.block(index)));
}

TEST_F(GroupBlocksTest, IsNotReadyWhileEveryBlockIsBeingSent) {
  EXPECT_TRUE(blocks.was_ready(0));
  std::vector<std::uint32_t> complete;
  for (int package = 0; package < 3; ++package) {
    for (std::uint64_t m = 0; m < 3; ++m) EXPECT_TRUE(append(0, 7, m).is_over());
    complete.push_back(append(0, 7, 3).complete);
  }
  EXPECT_FALSE(blocks.was_ready(0));
  EXPECT_TRUE(append(0, 7, 4).left);
  (void)flush(complete.back());
  EXPECT_TRUE(blocks.was_ready(0));
  EXPECT_TRUE(append(0, 7, 4).is_over());
}

TEST_F(GroupBlocksTest, HoldsNoMoreThanTheSinkTakes) {
  const auto two = [](std::uint32_t, std::uint32_t) { return 2u; };
  const std::uint64_t words[2] = {1, 10};
  EXPECT_TRUE(blocks.make_way(pool, 0, 7, kWidth, words, two).is_over());
  EXPECT_NE(append(0, 7, 2).complete, Blocks::kNone);
}

}  // namespace
}  // namespace esker
