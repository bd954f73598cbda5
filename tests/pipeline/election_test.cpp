// How lanes share a topic's counter: by each election every item comes once, in any branch, into several
// topics, round a loop; and the status array itself, its waves as threads.
#include <esker/device.hpp>
#include <esker/pipeline.hpp>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "../device/gtest.hpp"

namespace esker::testing {
namespace {

using namespace pipeline;

#if defined(ESKER_TEST_SIMULATED)
constexpr std::uint32_t kItems = 2000, kReservations = 300;
#elif defined(ESKER_TEST_SANITIZED)
constexpr std::uint32_t kItems = 10'000, kReservations = 2000;
#else
constexpr std::uint32_t kItems = 50'000, kReservations = 5000;
#endif

/// Multiples of 3 one way, twice; of the others each second one another way, from another branch.
template <class HowTheyElect>
struct Branch {
  using Election = HowTheyElect;
  Topic<std::uint32_t> threes, others;
  ESKER_HD void operator()(auto& stage, const std::uint32_t& n) const {
    if (n % 3 == 0) {
      stage.emit(threes, n);
      stage.emit(threes, n);
    } else if (n % 2 == 0) {
      stage.emit(others, n);
    }
  }
};

template <class Election>
void branch(std::uint32_t items, std::uint32_t slots, std::uint32_t of_frame, std::uint32_t group_lanes) {
  Options options;
  options.group_lanes = group_lanes;
  Pipeline p(Device::open(), options);
  const TopicOptions of{.frame_bytes = of_frame * 4, .frames = slots};
  const auto numbers = p.topic<std::uint32_t>({.frame_bytes = 4096, .frames = 4}),
             threes = p.topic<std::uint32_t>(of), others = p.topic<std::uint32_t>(of);
  std::uint32_t next = 0;
  std::vector<std::uint8_t> seen(items), seen_of_others(items);
  p.run(
      on_host::source("numbers",
                      [&](auto& stage) {
                        if (next == items) return false;
                        stage.emit(numbers, next++);
                        return true;
                      })
          .into(numbers),
      on_device::items("branch", Branch<Election>{threes, others}).from(numbers).into(threes, others),
      on_host::items("threes", [&](auto&, const std::uint32_t& n) { ++seen.at(n); }).from(threes),
      on_host::items("others", [&](auto&, const std::uint32_t& n) { ++seen_of_others.at(n); }).from(others));
  for (std::uint32_t i = 0; i < items; ++i) {
    ASSERT_EQ(seen[i], i % 3 == 0 ? 2 : 0) << i;
    ASSERT_EQ(seen_of_others[i], i % 3 != 0 && i % 2 == 0 ? 1 : 0) << i;
  }
}
template <class Election>
void branches() {
  branch<Election>(kItems, 8, 64, 256);
  branch<Election>(kItems / 4, 1, 3, 64);
  branch<Election>(kItems / 4, 2, 1, 96);
  branch<Election>(kItems, 16, 1024, 1024);
}
TEST(PipelineElection, OfConvergedLanesBringsEachItemOnce) { branches<PerConvergedWave>(); }
TEST(PipelineElection, OfEachLaneBringsEachItemOnce) { branches<PerLane>(); }
TEST(PipelineElection, ByStatusArrayBringsEachItemOnce) { branches<StatusArray>(); }

/// Each number n above 0 goes round again as n - 1, and n of them come out.
template <class HowTheyElect>
struct CountDown {
  using Election = HowTheyElect;
  Topic<std::uint32_t> again, out;
  ESKER_HD void operator()(auto& stage, const std::uint32_t& n) const {
    if (n == 0) return;
    stage.emit(again, n - 1);
    stage.emit(out, n);
  }
};
template <class Election>
void loop() {
  Options options;
  options.group_lanes = 128;
  Pipeline p(Device::open(), options);
  constexpr std::uint32_t kStarts = 200, kTurns = 9;
  const auto starts = p.topic<std::uint32_t>({.frame_bytes = 256, .frames = 8}),
             again = p.topic<std::uint32_t>({.frame_bytes = 256, .frames = 1024}),
             out = p.topic<std::uint32_t>({.frame_bytes = 256, .frames = 64});
  std::uint32_t next = 0;
  std::vector<std::uint32_t> seen(kTurns + 1);
  p.run(on_host::source("starts",
                        [&](auto& stage) {
                          if (next++ == kStarts) return false;
                          stage.emit(starts, kTurns);
                          return true;
                        })
            .into(starts),
        on_device::items("count down", CountDown<Election>{again, out}).from(starts, again).into(again, out),
        on_host::items("see", [&](auto&, const std::uint32_t& n) { ++seen.at(n); }).from(out));
  for (std::uint32_t n = 1; n <= kTurns; ++n) EXPECT_EQ(seen[n], kStarts) << n;
}
TEST(PipelineElection, OfEachLaneGoesRoundALoop) { loop<PerLane>(); }
TEST(PipelineElection, ByStatusArrayGoesRoundALoop) { loop<StatusArray>(); }

// --- The status array alone.

TEST(StatusArray, GivesEachPositionOnceAndAddsForSeveralWaves) {
  constexpr std::uint32_t kWaves = 6, kCounters = 2;
  using Words = pipeline::detail::StatusWords<SystemAtomic<std::uint32_t>>;
  Words words{};
  std::atomic<std::uint64_t> counters[kCounters] = {}, additions{0};
  struct Part {
    std::uint64_t first;
    std::uint32_t counter, count;
  };
  std::vector<std::vector<Part>> parts(kWaves);
  {
    std::vector<std::jthread> waves;
    for (std::uint32_t w = 0; w < kWaves; ++w) {
      waves.emplace_back([&, w] {
        for (std::uint32_t i = 0; i < kReservations; ++i) {
          const std::uint32_t counter = (w / 3 + i / 7) % kCounters, count = 1 + (i * 5 + w) % 32;
          const std::uint64_t first = words.reserve(
              w, counter, count,
              [&](std::uint32_t n) {
                additions.fetch_add(1, std::memory_order_relaxed);
                return counters[counter].fetch_add(n, std::memory_order_relaxed);
              },
              [] { std::this_thread::yield(); });
          parts[w].push_back({first, counter, count});
        }
      });
    }
  }
  for (std::uint32_t c = 0; c < kCounters; ++c) {
    std::vector<std::uint8_t> given(counters[c]);
    for (const auto& of_wave : parts) {
      for (const Part& part : of_wave) {
        if (part.counter != c) continue;
        for (std::uint64_t i = part.first; i < part.first + part.count; ++i) ++given.at(i);
      }
    }
    for (std::size_t i = 0; i < given.size(); ++i) ASSERT_EQ(given[i], 1) << i;
  }
  EXPECT_LE(additions, std::uint64_t{kWaves} * kReservations);
}

TEST(StatusArray, ServesNeighboursThatAreSetForTheSameCounter) {
  using Words = pipeline::detail::StatusWords<SystemAtomic<std::uint32_t>>;
  Words words{};
  const auto set = [&](std::uint32_t wave, std::uint32_t counter, std::uint32_t count) {
    words.entries[wave].counter = counter;
    words.entries[wave].count = count;
    words.entries[wave].status.store_release(Words::kSet);
  };
  set(1, 9, 100);  // another counter: the scan ends there
  set(2, 7, 10);
  set(4, 7, 30);
  set(6, 7, 50);  // behind one that is free
  std::uint64_t added = 0;
  const auto add = [&](std::uint32_t n) { return added += n, std::uint64_t{1000}; };
  EXPECT_EQ(words.reserve(3, 7, 20, add, [] {}), 1010u);
  EXPECT_EQ(added, 60u);
  for (const std::uint32_t wave : {1u, 6u}) EXPECT_EQ(words.entries[wave].status.load_acquire(), Words::kSet);
  for (const std::uint32_t wave : {2u, 4u})
    EXPECT_EQ(words.entries[wave].status.load_acquire(), Words::kServed);
  EXPECT_EQ(words.entries[2].first, 1000u);
  EXPECT_EQ(words.entries[4].first, 1030u);
  EXPECT_EQ(words.entries[3].status.load_acquire(), Words::kFree);
  // A wave whose entry is taken, by lanes of another branch, adds alone.
  EXPECT_EQ(words.reserve(6, 7, 5, add, [] {}), 1000u);
  EXPECT_EQ(added, 65u);
}

}  // namespace
}  // namespace esker::testing
