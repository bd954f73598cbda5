// The test for non-preemptive EDF against every way in which jobs can come.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include <esker/error.hpp>
#include <esker/transfer.hpp>

namespace {

using esker::transfer::SporadicTask;
using esker::transfer::test_edf;

/// Whether some sequence of releases, and some order among equal deadlines, makes a job late: a search over
/// all states of the tasks, one unit of time a step.
class EverySequence {
 public:
  explicit EverySequence(std::vector<SporadicTask> tasks) : tasks_{std::move(tasks)} {}

  bool has_a_miss() {
    State start;
    for (std::size_t i = 0; i < tasks_.size(); ++i)
      start.since[i] = static_cast<std::uint8_t>(tasks_[i].period);
    visit(start);
    while (!open_.empty() && !is_late_) {
      const State state = open_.back();
      open_.pop_back();
      const auto n = tasks_.size();
      for (unsigned released = 0; released < 1u << n && !is_late_; ++released) {
        State now = state;
        bool is_legal = true;
        for (std::size_t i = 0; i < n; ++i) {
          if ((released >> i & 1u) == 0) continue;
          is_legal = is_legal && now.since[i] == tasks_[i].period;
          now.since[i] = 0;
          now.is_pending[i] = true;
        }
        if (is_legal) choose(now);
      }
    }
    return is_late_;
  }

 private:
  struct State {
    std::array<std::uint8_t, 3> since{};  // its last release; the period stands for as long or longer
    std::array<bool, 3> is_pending{};     // released, not begun
    std::uint8_t running = 3, left = 0;
  };

  /// Begins each job with the earliest deadline, if none runs.
  void choose(const State& state) {
    if (state.running < 3) return step(state);
    std::uint64_t earliest = ~std::uint64_t{0};
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      if (state.is_pending[i]) earliest = std::min(earliest, tasks_[i].period - state.since[i]);
    }
    if (earliest == ~std::uint64_t{0}) return step(state);
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      if (!state.is_pending[i] || tasks_[i].period - state.since[i] != earliest) continue;
      State next = state;
      next.is_pending[i] = false;
      next.running = static_cast<std::uint8_t>(i);
      next.left = static_cast<std::uint8_t>(tasks_[i].cost);
      step(next);
    }
  }
  void step(State state) {
    bool is_late = false;
    if (state.running < 3) --state.left;
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      const bool is_there = state.is_pending[i] || (state.running == i && state.left > 0);
      if (state.since[i] < tasks_[i].period) ++state.since[i];
      is_late = is_late || (is_there && state.since[i] == tasks_[i].period);
    }
    if (state.running < 3 && state.left == 0) state.running = 3;
    if (is_late) is_late_ = true;
    visit(state);
  }
  void visit(const State& state) {
    std::uint32_t key = 0;
    for (std::size_t i = 0; i < 3; ++i) key = key * 16 + state.since[i];
    for (std::size_t i = 0; i < 3; ++i) key = key * 2 + (state.is_pending[i] ? 1 : 0);
    key = key * 4 + state.running;
    key = key * 8 + state.left;
    if (seen_.size() <= key) seen_.resize(1u << 20);
    if (seen_[key]) return;
    seen_[key] = true;
    open_.push_back(state);
  }

  std::vector<SporadicTask> tasks_;
  std::vector<State> open_;
  std::vector<bool> seen_;
  bool is_late_ = false;
};

TEST(EdfTest, AgreesWithEverySequenceOfReleases) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int feasible = 0, overloaded = 0, blocked = 0;
  for (int set = 0; set < 10'000; ++set) {
    std::vector<SporadicTask> tasks(1 + (random() % 8 + 3) / 4);
    for (SporadicTask& task : tasks) {
      task.period = 1 + random() % 13;
      task.cost = 1 + random() % std::min<std::uint64_t>((task.period + 1) / 2, 7);
    }
    const auto result = test_edf(tasks);
    (result.is_feasible ? feasible : result.is_overloaded ? overloaded : blocked) += 1;
    std::string text;
    for (const SporadicTask& task : tasks)
      text += " (" + std::to_string(task.cost) + ", " + std::to_string(task.period) + ")";
    ASSERT_EQ(result.is_feasible, !EverySequence(tasks).has_a_miss()) << text << ": " << result.reason;
  }
  EXPECT_GT(feasible, 1000);
  EXPECT_GT(overloaded, 1000);
  EXPECT_GT(blocked, 300);
}

TEST(EdfTest, SaysWhichTaskKeepsTheOthers) {
  const SporadicTask tasks[] = {{9, 60}, {20, 25}};
  const auto result = test_edf(tasks);
  EXPECT_FALSE(result.is_feasible);
  EXPECT_FALSE(result.is_overloaded);
  EXPECT_EQ(result.task, 0u);
  EXPECT_EQ(result.interval, 26u);
  EXPECT_EQ(result.needed, 29u);
  EXPECT_EQ(result.reason, "task 0, just begun, and shorter ones need 29 of an interval of 26");
  EXPECT_TRUE(esker::transfer::fits_utilisation(tasks));
}

TEST(EdfTest, UtilisationOfExactlyOneFits) {
  const std::uint64_t large = (std::uint64_t{1} << 61) - 1;
  const SporadicTask whole[] = {{1, 3}, {1, 3}, {1, 3}};
  EXPECT_TRUE(test_edf(whole).is_feasible);
  const SporadicTask above[] = {{large - 1, large}, {2, large}};
  EXPECT_TRUE(test_edf(above).is_overloaded);
}

TEST(EdfTest, TakesPeriodsOfAnyLength) {
  const std::uint64_t never = ~std::uint64_t{0};
  const SporadicTask two[] = {{1, never}, {1, never}};
  EXPECT_TRUE(test_edf(two).is_feasible);
  // One without a deadline, in no time: of 2^64 / 1000 intervals the first few tell.
  const SporadicTask fits[] = {{1, 1000}, {1000, never}}, does_not[] = {{1, 1000}, {1001, never}};
  EXPECT_TRUE(test_edf(fits).is_feasible);
  EXPECT_EQ(test_edf(does_not).interval, 1001u);
  EXPECT_EQ(test_edf(does_not).needed, 1002u);
}

TEST(EdfTest, RefusesAPeriodOfZero) {
  const SporadicTask tasks[] = {{1, 5}, {1, 0}};
  try {
    (void)test_edf(tasks);
    FAIL();
  } catch (const esker::Error& error) {
    EXPECT_STREQ(error.what(), "test_edf: task 1 has cost 1 and period 0: neither is 0");
  }
}

}  // namespace
