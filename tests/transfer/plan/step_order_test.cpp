// Waits between lanes beside all orders that lanes allow: no conflict is left open, and no wait is for
// nothing.
#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <esker/transfer/plan/step_order.hpp>

#include "../../runtime/seed.hpp"

namespace esker::transfer {
namespace {

bool conflict(const OrderedStep& a, const OrderedStep& b) {
  return std::any_of(a.ranges.begin(), a.ranges.end(), [&](const StepRange& mine) {
    return std::any_of(b.ranges.begin(), b.ranges.end(), [&](const StepRange& its) {
      return mine.begin < its.end && its.begin < mine.end && (mine.is_written || its.is_written);
    });
  });
}

/// [later][earlier]: the earlier one is done when the later one begins.
using Before = std::vector<std::vector<bool>>;

Before closure(const std::vector<OrderedStep>& steps, const std::vector<std::vector<std::uint32_t>>& waits) {
  Before before(steps.size(), std::vector<bool>(steps.size(), false));
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const auto after = [&](std::size_t earlier) {
      before[s][earlier] = true;
      for (std::size_t i = 0; i < earlier; ++i) before[s][i] = before[s][i] || before[earlier][i];
    };
    for (std::size_t i = 0; i < s; ++i) {
      if (steps[i].lane == steps[s].lane) after(i);
    }
    for (const std::uint32_t earlier : waits[s]) after(earlier);
  }
  return before;
}

std::vector<OrderedStep> random_steps(std::mt19937_64& random, std::uint32_t lanes) {
  std::vector<OrderedStep> steps(1 + random() % 24);
  const std::uint64_t bytes = 1 + random() % 12;
  for (OrderedStep& step : steps) {
    step.lane = static_cast<std::uint32_t>(random() % lanes);
    for (std::uint64_t n = random() % 4; n > 0; --n) {
      const std::uintptr_t begin = 1000 + random() % bytes;
      step.ranges.push_back({begin, begin + 1 + random() % 3, random() % 3 == 0});
    }
  }
  return steps;
}

TEST(StepOrder, LeavesNoConflictOpenAndWaitsForNothingElse) {
  for (int round = 0; round < 20'000; ++round) {
    std::mt19937_64 random(testing::mix(testing::seed() + static_cast<std::uint64_t>(round)));
    const auto lanes = static_cast<std::uint32_t>(1 + random() % 5);
    const std::vector<OrderedStep> steps = random_steps(random, lanes);
    const auto waits = waits_between(steps, lanes);
    ASSERT_EQ(waits.size(), steps.size());
    const Before before = closure(steps, waits);
    for (std::size_t s = 0; s < steps.size(); ++s) {
      for (std::size_t i = 0; i < s; ++i)
        ASSERT_TRUE(before[s][i] || !conflict(steps[i], steps[s]))
            << "round " << round << ": " << s << ", " << i;
      std::vector<bool> is_waited_for(lanes, false);
      for (const std::uint32_t earlier : waits[s]) {
        ASSERT_LT(earlier, s);
        ASSERT_NE(steps[earlier].lane, steps[s].lane);
        ASSERT_FALSE(is_waited_for[steps[earlier].lane]) << "round " << round;
        is_waited_for[steps[earlier].lane] = true;
        ASSERT_TRUE(conflict(steps[earlier], steps[s])) << "round " << round << ": " << s << ", " << earlier;
        // Its lane has not waited for it, or a later one there, before.
        for (std::size_t i = 0; i < s; ++i) {
          if (steps[i].lane != steps[s].lane) continue;
          for (const std::uint32_t known : waits[i])
            ASSERT_TRUE(steps[known].lane != steps[earlier].lane || known < earlier) << "round " << round;
        }
      }
    }
  }
}

TEST(StepOrder, ReadersDoNotWaitForEachOther) {
  const std::vector<OrderedStep> steps = {{0, {{0, 8, true}}},
                                          {1, {{0, 8, false}}},
                                          {2, {{4, 6, false}}},
                                          {0, {{5, 6, true}}},
                                          {1, {{0, 4, false}}}};
  const std::vector<std::vector<std::uint32_t>> expected = {{}, {0}, {0}, {1, 2}, {}};
  EXPECT_EQ(waits_between(steps, 3), expected);
  EXPECT_TRUE(waits_between({}, 3).empty());
}

}  // namespace
}  // namespace esker::transfer
