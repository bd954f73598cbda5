// Pipelines: each frame and each item once, in order where it is said, whatever is full; errors, stops, ends.
#include <esker/device.hpp>
#include <esker/pipeline.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../device/gtest.hpp"
#include "counting.hpp"

namespace esker::testing {
namespace {

using namespace pipeline;
using std::chrono::milliseconds;
Device device() { return Device::open(); }

#if defined(ESKER_TEST_SIMULATED)
constexpr std::uint32_t kFrames = 40;
constexpr std::uint32_t kItems = 3000;
#elif defined(ESKER_TEST_SANITIZED)
constexpr std::uint32_t kFrames = 200;
constexpr std::uint32_t kItems = 20'000;
#else
constexpr std::uint32_t kFrames = 1000;
constexpr std::uint32_t kItems = 100'000;
#endif

struct Double {
  ESKER_HD void operator()(auto& stage, const Frame<const std::uint32_t>& in,
                           Frame<std::uint64_t>& out) const {
    for (std::uint32_t i = stage.lane(); i < in.count; i += stage.lanes()) out[i] = 2 * std::uint64_t{in[i]};
  }
};

void ping_pong(Crossing crossing, std::uint32_t frames, std::uint32_t slots, std::uint32_t n,
               std::uint32_t parts) {
  Pipeline p(device(), small_groups());
  const auto in =
      p.topic<std::uint32_t>({.name = "in", .frame_bytes = n * 4, .frames = slots, .crossing = crossing});
  const auto out =
      p.topic<std::uint64_t>({.name = "out", .frame_bytes = n * 8, .frames = slots, .crossing = crossing});
  std::uint32_t next = 0, seen = 0;
  bool is_right = true;
  p.run(on_host::source("count", Count{in, frames, n, &next}).into(in),
        on_device::map("double", in, out, Double{}).parts(parts),
        on_host::frames("check", [&](auto&, const Frame<const std::uint64_t>& frame) {
          is_right = is_right && frame.count == n && frame.number == seen && frame.tag == seen + 7;
          for (std::uint32_t i = 0; i < frame.count; ++i)
            is_right = is_right && frame[i] == 2ull * (seen * n + i);
          ++seen;
        }).from(out));
  EXPECT_TRUE(is_right);
  EXPECT_EQ(seen, frames);
  EXPECT_EQ(p.report().topics[0].frames, frames);
  EXPECT_EQ(p.report().stages[1].frames, std::uint64_t{frames} * parts);
  EXPECT_EQ(p.report().topics[1].lost, 0u);
}
TEST(Pipeline, MapsEachFrameInOrder) {
  for (const Crossing crossing : {Crossing::kDirect, Crossing::kBatched, Crossing::kManaged}) {
    for (const std::uint32_t slots : {1u, 2u, 5u, 64u}) ping_pong(crossing, kFrames, slots, 100, 1);
    ping_pong(crossing, 0, 4, 100, 1);
    ping_pong(crossing, 1, 4, 1, 1);
  }
}
TEST(Pipeline, MapsPartsOfFrames) { ping_pong(Crossing::kDirect, kFrames / 4, 8, 1000, 4); }

// --- Teams that move.

/// Doubles, in a time that grows with `naps`.
struct DoubleSlowly {
  int naps;
  ESKER_HD void operator()(auto& stage, const Frame<const std::uint32_t>& in,
                           Frame<std::uint32_t>& out) const {
    for (int i = 0; i < naps; ++i) Lane::yield();
    for (std::uint32_t i = stage.lane(); i < in.count; i += stage.lanes()) out[i] = 2 * in[i];
  }
};
/// Whether the slower of two stages has more teams at the end.
bool slow_stage_gets_teams(bool first_is_slow) {
  // Threads of a host do not move, and beside other programs each nap of theirs may take milliseconds. A real
  // GPU has few teams if they are large: then a stage has fewer than it may have, and one of long naps holds
  // the others up.
  const bool is_cpu = device().backend() == Backend::kCpu,
             is_real = !is_cpu && device().backend() != Backend::kSimulated;
  const int naps = is_cpu ? 1 : is_real ? 10000 : 200;
  Options options = small_groups();
  if (is_real) options.group_lanes = 1024;
  options.balance = true;
  Pipeline p(device(), options);
  const std::uint32_t frames = is_cpu ? 100 : is_real ? 5 * kFrames : 10 * kFrames, n = 16;
  const std::uint32_t slots = is_real ? 1024 : 64;
  std::vector<Topic<std::uint32_t>> t;
  for (int i = 0; i < 4; ++i) t.push_back(p.topic<std::uint32_t>({.frame_bytes = n * 4, .frames = slots}));
  std::uint32_t next = 0, seen = 0;
  bool is_right = true;
  p.run(on_host::source("count", Count{t[0], frames, n, &next}).into(t[0]),
        on_device::map("a", t[0], t[1], DoubleSlowly{first_is_slow ? naps : 0}),
        on_device::map("b", t[1], t[2], DoubleSlowly{first_is_slow ? 0 : naps}).staged(),
        on_device::map("c", t[2], t[3], DoubleSlowly{0}).workers(8),
        on_host::frames("check", [&](auto&, const Frame<const std::uint32_t>& frame) {
          is_right = is_right && frame.count == n && frame.number == seen;
          for (std::uint32_t i = 0; i < frame.count; ++i)
            is_right = is_right && frame[i] == 8 * (seen * n + i);
          ++seen;
        }).from(t[3]));
  EXPECT_TRUE(is_right);
  EXPECT_EQ(seen, frames);
  const auto& stages = p.report().stages;
  EXPECT_EQ(stages[1].teams + stages[2].teams, stages[1].teams_at_end + stages[2].teams_at_end);
  EXPECT_EQ(stages[3].teams, stages[3].teams_at_end) << "its workers are given";
  const Report::Stage& slow = stages[first_is_slow ? 1 : 2];
  return is_cpu || slow.teams_at_end > slow.teams;
}
TEST(Pipeline, MovesTeamsToTheStageThatHoldsOthersUp) {
  for (const bool first_is_slow : {false, true}) {
    // Beside other programs a simulated device's stages stand still in turns: one of several runs is
    // undisturbed.
    bool moved = false;
    for (int run = 0; run < 3 && !moved && !HasFailure(); ++run) moved = slow_stage_gets_teams(first_is_slow);
    EXPECT_TRUE(moved) << (first_is_slow ? "the first is slow" : "the second is slow");
  }
}

// --- Items: emitted in any branch, batched underneath.

struct EmitNumbers {
  Topic<std::uint32_t> to;
  std::uint32_t n;
  std::atomic<std::uint32_t>* next;
  bool operator()(auto& stage) const {
    const std::uint32_t i = next->fetch_add(1);
    if (i >= n) return false;
    stage.emit(to, i);
    return true;
  }
};
/// Even numbers one way, odd ones another, and each third twice.
struct Branch {
  Topic<std::uint32_t> even;
  Topic<std::uint64_t> odd;
  ESKER_HD void operator()(auto& stage, const std::uint32_t& n) const {
    if (n % 2 == 0) {
      stage.emit(even, n);
      if (n % 3 == 0) stage.emit(even, n);
    } else {
      stage.emit(odd, std::uint64_t{n} * n);
    }
  }
};

void branch(std::uint32_t items, std::uint32_t slots, std::uint32_t an_item, std::uint32_t workers) {
  Pipeline p(device(), small_groups());
  const TopicOptions options{.frame_bytes = an_item * 4, .frames = slots};
  const auto numbers = p.topic<std::uint32_t>(options), even = p.topic<std::uint32_t>(options);
  const auto odd = p.topic<std::uint64_t>({.frame_bytes = an_item * 8, .frames = slots});
  std::atomic<std::uint32_t> next{0};
  std::vector<std::uint8_t> seen(items), squares(items);
  std::uint64_t evens = 0;
  bool has_ended = false;
  p.run(on_host::source("numbers", EmitNumbers{numbers, items, &next}).into(numbers).workers(workers),
        on_device::items("branch", Branch{even, odd}).from(numbers).into(even, odd),
        on_host::items("evens", [&](auto&, const std::uint32_t& n) { ++seen.at(n), ++evens; })
            .from(even)
            .at_end([&](auto&) { has_ended = true; }),
        on_host::items("odds", [&](auto&, const std::uint64_t& n) {
          for (std::uint32_t i = 1; i < items; i += 2) {
            if (std::uint64_t{i} * i == n) ++squares[i];
          }
        }).from(odd));
  EXPECT_TRUE(has_ended);
  for (std::uint32_t i = 0; i < items; ++i) {
    ASSERT_EQ(seen[i], i % 2 != 0 ? 0 : i % 3 == 0 ? 2 : 1) << i;
    ASSERT_EQ(squares[i], i % 2) << i;
  }
  EXPECT_EQ(p.report().stages[2].items, evens);
}
TEST(Pipeline, BranchesByItem) {
  for (const std::uint32_t an_item : {1u, 3u, 64u}) {
    for (const std::uint32_t slots : {1u, 2u, 7u}) branch(1000, slots, an_item, 1);
  }
  branch(1000, 4, 16, 3);
}
struct Pass {
  Topic<std::uint32_t> to;
  ESKER_HD void operator()(auto& stage, const std::uint32_t& n) const { stage.emit(to, n); }
};
TEST(Pipeline, CountsManyItems) {
  Pipeline p(device(), small_groups());
  const auto a = p.topic<std::uint32_t>({.frame_bytes = 1 << 12}),
             b = p.topic<std::uint32_t>({.frame_bytes = 1 << 12});
  std::atomic<std::uint32_t> next{0};
  std::uint64_t sum = 0;
  p.run(on_host::source("numbers", EmitNumbers{a, kItems, &next}).into(a),
        on_device::items("pass", Pass{b}).from(a).into(b),
        on_host::items("sum", [&](auto&, const std::uint32_t& n) { sum += n; }).from(b));
  EXPECT_EQ(sum, std::uint64_t{kItems} * (kItems - 1) / 2);
}

// --- Loops: a stage that feeds itself, and two sides that feed each other.

struct Split {
  Topic<std::uint32_t> again, leaves;
  ESKER_HD void operator()(auto& stage, const std::uint32_t& n) const {
    if (n < 2) return stage.emit(leaves, n);
    stage.emit(again, n - 1);
    stage.emit(again, n - 2);
  }
};
std::uint32_t fib(std::uint32_t n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
TEST(Pipeline, RecursAndEndsExactly) {
#if defined(ESKER_TEST_SIMULATED)
  constexpr std::uint32_t kN = 8;
#else
  constexpr std::uint32_t kN = 14;
#endif
  for (const bool on_host_too : {false, true}) {
    Pipeline p(device(), small_groups());
    const auto seeds = p.topic<std::uint32_t>({.name = "seeds", .frame_bytes = 16, .frames = 4});
    const auto again = p.topic<std::uint32_t>({.name = "again", .frame_bytes = 64, .frames = 4096});
    const auto leaves = p.topic<std::uint32_t>({.name = "leaves", .frame_bytes = 64, .frames = 16});
    std::uint32_t given = 0;
    std::uint64_t sum = 0;
    const auto source = on_host::source("seeds", [&](auto& stage) {
                          if (given == 5) return false;
                          if (given == 3) std::this_thread::sleep_for(milliseconds{5});  // a bubble
                          stage.emit(seeds, kN);
                          ++given;
                          return true;
                        }).into(seeds);
    const auto sink = on_host::items("sum", [&](auto&, const std::uint32_t& n) { sum += n; }).from(leaves);
    if (on_host_too) {
      p.run(source,
            on_host::items("split", Split{again, leaves}).from(seeds, again).into(again, leaves).workers(2),
            sink);
    } else {
      p.run(source, on_device::items("split", Split{again, leaves}).from(seeds, again).into(again, leaves),
            sink);
    }
    EXPECT_EQ(sum, 5u * fib(kN));
  }
}
struct Down {
  Topic<std::uint32_t> to;
  ESKER_HD void operator()(auto& stage, const std::uint32_t& n) const { stage.emit(to, n - 1); }
};
TEST(Pipeline, LoopsBetweenHostAndDevice) {
  Pipeline p(device(), small_groups());
  const auto start = p.topic<std::uint32_t>({.name = "start", .frame_bytes = 4, .frames = 8});
  const auto to_device = p.topic<std::uint32_t>({.name = "to device", .frame_bytes = 64, .frames = 256});
  const auto to_host = p.topic<std::uint32_t>({.name = "to host", .frame_bytes = 64, .frames = 256});
  const auto done = p.topic<std::uint32_t>({.name = "done", .frame_bytes = 64});
  std::uint32_t given = 0, ended = 0;
  p.run(on_host::source("start",
                        [&](auto& stage) {
                          if (given == 10) return false;
                          stage.emit(start, 2 * ++given);
                          return true;
                        })
            .into(start),
        on_host::items("turn",
                       [&](auto& stage, const std::uint32_t& n) {
                         if (n != 0) {
                           stage.emit(to_device, n);
                         } else {
                           stage.emit(done, n);
                         }
                       })
            .from(start, to_host)
            .into(to_device, done),
        on_device::items("down", Down{to_host}).from(to_device).into(to_host),
        on_host::items("done", [&](auto&, const std::uint32_t&) { ++ended; }).from(done));
  EXPECT_EQ(ended, 10u);
}

/// Goes round until it is a multiple of 10, and then on.
struct Round {
  Topic<std::uint32_t> again, on;
  ESKER_HD void operator()(auto& stage, const std::uint32_t& n) const {
    if (n % 10 == 0) {
      stage.emit(on, n + 3);
    } else {
      stage.emit(again, n - 1);
    }
  }
};
/// A stage of the host that begins late, when what comes before it has come as far as it can.
template <class Function>
auto late(const Function& function) {
  return [function](auto& stage, const std::uint32_t& n) {
    if (n == 3) std::this_thread::sleep_for(milliseconds{10});
    function(stage, n);
  };
}
/// Into a topic of the loop itself: who is outside waits for room, and nobody inside waits for them.
TEST(Pipeline, FeedsALoopThatHasNoRoom) {
  Pipeline p(device(), small_groups());
  const auto round = p.topic<std::uint32_t>({.name = "round", .frame_bytes = 16, .frames = 64});
  const auto done = p.topic<std::uint32_t>({.name = "done", .frame_bytes = 16, .frames = 2});
  for (const bool opens : {false, true}) {
    std::atomic<std::uint32_t> given{0};
    std::uint32_t seen = 0;
    const auto give = [&](auto& stage) {
      const std::uint32_t n = given++;
      if (n == kItems / 100) return false;
      if (!opens) {
        stage.emit(round, 10 * n + 3);
        return true;
      }
      auto frame = stage.open(round);
      if (frame.data == nullptr) return false;
      frame.count = 1;
      frame[0] = 10 * n + 3;
      stage.publish(round, frame);
      return true;
    };
    p.run(on_host::source("give", give).into(round),
          on_host::items("loop", late(Round{round, done})).from(round).into(round, done),
          on_host::items("sink", [&](auto&, const std::uint32_t&) { ++seen; }).from(done));
    EXPECT_EQ(seen, kItems / 100);
  }
}
/// Computes for some microseconds: where other programs have the cores, a yield takes milliseconds.
struct LateRound {
  Round round;
  ESKER_HD void operator()(auto& stage, const std::uint32_t& n) const {
    for (volatile int i = 0; i < 5000;) {
      i = i + 1;
    }
    round(stage, n);
  }
};
/// A stage of a loop waits for room in another one, as a stage of none does.
TEST(Pipeline, FeedsALoopFromAnother) {
  Pipeline p(device(), small_groups());
  const auto start = p.topic<std::uint32_t>({.name = "start", .frame_bytes = 4, .frames = 4});
  const auto first = p.topic<std::uint32_t>({.name = "first", .frame_bytes = 4, .frames = 64});
  const auto second = p.topic<std::uint32_t>({.name = "second", .frame_bytes = 4, .frames = 8});
  const auto done = p.topic<std::uint32_t>({.name = "done", .frame_bytes = 4, .frames = 2});
  std::atomic<std::uint32_t> given{0};
  std::uint32_t seen = 0;
  p.run(on_host::source("give",
                        [&](auto& stage) {
                          const std::uint32_t n = given++;
                          if (n == kFrames) return false;
                          stage.emit(start, 10 * n + 3);
                          return true;
                        })
            .into(start),
        on_device::items("one", Round{first, second}).from(start, first).into(first, second).workers(1),
        on_device::items("two", LateRound{{second, done}}).from(second).into(second, done).workers(1),
        on_host::items("sink", [&](auto&, const std::uint32_t&) { ++seen; }).from(done));
  EXPECT_EQ(seen, kFrames);
}

// --- Several subscribers, fan-in, reduce.

TEST(Pipeline, GivesEachSubscriberEachFrame) {
  Pipeline p(device(), small_groups());
  const auto in = p.topic<std::uint32_t>({.name = "in", .frame_bytes = 40, .frames = 3});
  const auto out = p.topic<std::uint64_t>({.name = "out", .frame_bytes = 80, .frames = 3});
  std::uint32_t next = 0;
  std::uint64_t sum = 0, doubled = 0, reduced = 0;
  const auto total = p.topic<std::uint64_t>({.name = "total", .frame_bytes = 8, .frames = 1});
  p.run(on_host::source("count", Count{in, kFrames, 10, &next}).into(in),
        on_device::map("double", in, out, Double{}),
        on_host::items("sum", [&](auto&, const std::uint32_t& n) { sum += n; })
            .from(in)
            .into(total)
            .at_end([&](auto& stage) { stage.emit(total, sum); }),
        on_host::items("doubled", [&](auto&, const std::uint64_t& n) { doubled += n; }).from(out),
        on_host::items("reduced", [&](auto&, const std::uint64_t& n) { reduced = n; }).from(total));
  const std::uint64_t n = kFrames * 10ull;
  EXPECT_EQ(sum, n * (n - 1) / 2);
  EXPECT_EQ(doubled, n * (n - 1));
  EXPECT_EQ(reduced, sum);
}
TEST(Pipeline, DropsTheOldestWhereItMay) {
  Pipeline p(device());
  const auto in = p.topic<std::uint32_t>(
      {.name = "in", .frame_bytes = 4, .frames = 4, .when_full = WhenFull::kDropOldest});
  std::uint32_t next = 0, seen = 0, last = 0;
  bool in_order = true;
  p.run(on_host::source("count", Count{in, 200, 1, &next}).into(in),
        on_host::frames("slow", [&](auto&, const Frame<const std::uint32_t>& f) {
          in_order = in_order && (seen == 0 || f[0] > last);
          last = f[0];
          ++seen;
          std::this_thread::sleep_for(milliseconds{1});
        }).from(in));
  EXPECT_TRUE(in_order);
  EXPECT_EQ(last, 199u);
  EXPECT_EQ(seen + p.report().topics[0].dropped, 200u);
}
TEST(Pipeline, WhoDropsTheOldestDoesNotWaitForWhoWorksOnAFrame) {
  for (const std::uint32_t workers : {1u, 2u, 5u}) {
    Pipeline p(device());
    const auto in = p.topic<std::uint32_t>(
        {.name = "in", .frame_bytes = 4, .frames = 4, .when_full = WhenFull::kDropOldest});
    std::atomic<std::uint32_t> at_work{0}, newest{0};
    std::atomic<bool> is_over{false};
    std::uint32_t next = 0;
    p.run(on_host::source("count",
                          [&](auto& stage) {
                            // Each worker has one before the rest comes: they take them one by one.
                            while (next <= workers && at_work < next) std::this_thread::yield();
                            stage.emit(in, next++);
                            is_over = next == 200;
                            return next < 200;
                          })
              .into(in),
          on_host::frames("stuck",
                          [&](auto&, const Frame<const std::uint32_t>& f) {
                            if (at_work++ < workers) {
                              while (!is_over) std::this_thread::yield();
                            } else if (f[0] >= 196) {
                              ++newest;
                            }
                          })
              .from(in)
              .workers(workers));
    EXPECT_EQ(at_work, workers + 4) << workers;
    EXPECT_EQ(newest, 4u) << workers;
    EXPECT_EQ(p.report().topics[0].dropped, 200 - workers - 4) << workers;
  }
}

// --- What goes wrong.

template <class Run>
void expect_error(const Run& run, PipelineError::Reason reason, const std::vector<std::string>& parts) {
  try {
    run();
    ADD_FAILURE() << "it ended well";
  } catch (const PipelineError& error) {
    EXPECT_EQ(error.reason(), reason) << error.what();
    for (const std::string& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}
struct FailAt {
  std::uint32_t bad;
  bool whole;
  ESKER_HD void operator()(auto& stage, const Frame<const std::uint32_t>& in,
                           Frame<std::uint64_t>& out) const {
    for (std::uint32_t i = stage.lane(); i < in.count; i += stage.lanes()) {
      out[i] = in[i];
      if (in[i] % 100 != bad) continue;
      if (whole) {
        stage.fail(42, in[i], 5);
      } else {
        stage.fail_frame(43, in[i], 6);
      }
    }
  }
};
TEST(Pipeline, EndsWithWhatAStageHasSaid) {
  for (int round = 0; round < 5; ++round) {
    Pipeline p(device(), small_groups());
    const auto in = p.topic<std::uint32_t>({.name = "in", .frame_bytes = 400, .frames = 4});
    const auto out = p.topic<std::uint64_t>({.name = "out", .frame_bytes = 800, .frames = 4});
    std::uint32_t next = 0;
    expect_error(
        [&] {
          p.run(on_host::source("count", Count{in, kFrames, 10, &next}).into(in),
                on_device::map("map", in, out, FailAt{31, true}),
                on_host::frames("sink", [](auto&, const Frame<const std::uint64_t>&) {}).from(out));
        },
        PipelineError::Reason::kFailed, {"stage 'map' failed with code 42 (31, 5)", "frames were not done"});
  }
}
TEST(Pipeline, KeepsFramesThatFailApart) {
  std::vector<FrameError> errors;
  Options options = small_groups();
  options.on_frame_error = [&](const FrameError& e) { errors.push_back(e); };
  Pipeline p(device(), options);
  const auto in = p.topic<std::uint32_t>({.name = "in", .frame_bytes = 40, .frames = 4});
  const auto out = p.topic<std::uint64_t>({.name = "out", .frame_bytes = 80, .frames = 4});
  std::uint32_t next = 0, seen = 0;
  p.run(on_host::source("count", Count{in, kFrames, 10, &next}).into(in),
        on_device::map("map", in, out, FailAt{31, false}),
        on_host::frames("sink", [&](auto&, const Frame<const std::uint64_t>& f) {
          seen += f[0] % 100 == 30 ? 1000000 : 1;
        }).from(out));
  const std::uint32_t failed = kFrames / 10;
  EXPECT_EQ(seen, kFrames - failed);
  EXPECT_EQ(p.report().failed_frames, failed);
  EXPECT_EQ(p.report().stages[2].skipped, failed);
  ASSERT_EQ(errors.size(), failed);
  std::sort(errors.begin(), errors.end(),
            [](const FrameError& a, const FrameError& b) { return a.frame < b.frame; });
  EXPECT_EQ(errors[0].stage, "map");
  EXPECT_EQ(errors[0].frame, 3u);
  EXPECT_EQ(errors[0].tag, 10u);
  EXPECT_EQ(errors[0].code, 43);
  EXPECT_EQ(errors[0].values[0], 31u);
}
TEST(Pipeline, PassesOnWhatAHostStageThrows) {
  Pipeline p(device(), small_groups());
  const auto in = p.topic<std::uint32_t>({.name = "in", .frame_bytes = 40, .frames = 4});
  const auto out = p.topic<std::uint64_t>({.name = "out", .frame_bytes = 80, .frames = 4});
  for (int round = 0; round < 3; ++round) {
    std::uint32_t next = 0;
    EXPECT_THROW(p.run(on_host::source("count", Count{in, kFrames, 10, &next}).into(in),
                       on_device::map("double", in, out, Double{}),
                       on_host::frames("sink",
                                       [&](auto&, const Frame<const std::uint64_t>& f) {
                                         if (f.number == 20) throw std::out_of_range("a stage's own");
                                       })
                           .from(out)),
                 std::out_of_range);
  }
}
TEST(Pipeline, StopsAndDrains) {
  Pipeline p(device(), small_groups());
  const auto in = p.topic<std::uint32_t>({.name = "in", .frame_bytes = 40, .frames = 4});
  const auto out = p.topic<std::uint64_t>({.name = "out", .frame_bytes = 80, .frames = 4});
  for (const bool drains : {true, false}) {
    std::uint32_t next = 0;
    std::uint64_t seen = 0;
    p.start(on_host::source("count", Count{in, ~0u, 10, &next}).into(in),
            on_device::map("double", in, out, Double{}),
            on_host::frames("sink", [&](auto&, const Frame<const std::uint64_t>&) { ++seen; }).from(out));
    std::this_thread::sleep_for(milliseconds{20});
    if (drains) {
      EXPECT_TRUE(p.drain(milliseconds{20'000}));
      p.wait();
      EXPECT_EQ(seen, next);
      EXPECT_GT(seen, 0u);
    } else {
      p.stop();
      expect_error([&] { p.wait(); }, PipelineError::Reason::kStopped, {"stopped on request"});
    }
  }
}
TEST(Pipeline, StopsWhileAnotherThreadRunsIt) {
  Pipeline p(device(), small_groups());
  const auto in = p.topic<std::uint32_t>({.name = "in", .frame_bytes = 40, .frames = 4});
  std::uint32_t next = 0;
  std::atomic<std::uint32_t> seen{0};
  std::thread stopper([&] {
    while (seen.load() < 10) std::this_thread::yield();
    p.stop();
  });
  expect_error(
      [&] {
        p.run(on_host::source("count", Count{in, ~0u, 10, &next}).into(in),
              on_host::frames("sink", [&](auto&, const Frame<const std::uint32_t>&) { ++seen; }).from(in));
      },
      PipelineError::Reason::kStopped, {"stopped on request"});
  stopper.join();
}
/// All parts of a frame may fail it.
struct FailFirst {
  ESKER_HD void operator()(auto& stage, const Frame<const std::uint32_t>& in, Frame<std::uint64_t>&) const {
    if (in.number % 2 == 0 && stage.lane() == 0) stage.fail_frame(44);
  }
};
TEST(Pipeline, KeepsFramesApartWhosePartsFail) {
  Pipeline p(device(), small_groups());
  const auto in = p.topic<std::uint32_t>({.name = "in", .frame_bytes = 800, .frames = 4});
  const auto out = p.topic<std::uint64_t>({.name = "out", .frame_bytes = 1600, .frames = 4});
  std::uint32_t next = 0, seen = 0;
  p.run(on_host::source("count", Count{in, kFrames, 200, &next}).into(in),
        on_device::map("map", in, out, FailFirst{}).parts(3).workers(3),
        on_host::frames("sink", [&](auto&, const Frame<const std::uint64_t>& frame) {
          seen += frame.number % 2 != 0 ? 1 : 1000000;
        }).from(out));
  EXPECT_EQ(seen, kFrames / 2);
  EXPECT_EQ(p.report().failed_frames, 3u * (kFrames / 2));
}
TEST(Pipeline, SaysThatALoopIsTooSmall) {
  Pipeline p(device(), small_groups());
  const auto seeds = p.topic<std::uint32_t>({.name = "seeds", .frame_bytes = 4, .frames = 4});
  const auto again = p.topic<std::uint32_t>({.name = "again", .frame_bytes = 4, .frames = 8});
  const auto leaves = p.topic<std::uint32_t>({.name = "leaves", .frame_bytes = 4, .frames = 8});
  bool given = false;
  expect_error(
      [&] {
        p.run(on_host::source("seeds",
                              [&](auto& stage) {
                                if (given) return false;
                                stage.emit(seeds, 20u);
                                return given = true;
                              })
                  .into(seeds),
              on_device::items("split", Split{again, leaves}).from(seeds, again).into(again, leaves),
              on_host::items("sum", [](auto&, const std::uint32_t&) {}).from(leaves));
      },
      PipelineError::Reason::kFull, {"stage 'split' found 'again' full", "more than 8 frames"});
}
struct Nothing {
  ESKER_HD void operator()(auto&, const Frame<const std::uint32_t>&, Frame<std::uint32_t>&) const {}
};
struct EmitOne {
  Topic<std::uint32_t> to;
  ESKER_HD void operator()(auto& stage) const { stage.emit(to, 1u); }
};
TEST(Pipeline, RefusesPipelinesThatAreWrong) {
  const auto says = [](const auto& run, const std::string& part) {
    try {
      run();
      ADD_FAILURE() << "it was taken: " << part;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  Pipeline p(device(), small_groups()), other(device());
  const auto a = p.topic<std::uint32_t>({.name = "a"}), b = p.topic<std::uint32_t>({.name = "b"});
  const auto foreign = other.topic<std::uint32_t>({.name = "foreign"});
  const auto nothing = [](auto&) { return false; };
  const auto sink = [](auto&, const std::uint32_t&) {};
  says([&] { p.run(on_host::source("s", nothing).into(a)); }, "nobody takes from 'a'");
  says([&] { p.run(on_host::items("s", sink).from(a)); }, "nobody publishes into 'a'");
  says([&] { p.run(on_host::source("s", nothing).into(foreign), on_host::items("t", sink).from(foreign)); },
       "another pipeline");
  says([&] { p.run(on_host::source("s", nothing).into(a, a), on_host::items("t", sink).from(a)); },
       "names 'a' twice");
  says([&] { p.run(on_host::source("s", nothing).into(a), on_host::items("t", sink).from(a, a)); },
       "takes twice from 'a'");
  says(
      [&] {
        p.run(on_host::source("s", nothing).into(a, b), on_device::map("m", a, b, Nothing{}),
              on_host::items("t", sink).from(b));
      },
      "'b' is the output of a map");
  says([&] { (void)p.topic<std::uint64_t>({.name = "small", .frame_bytes = 4}); },
       "a frame of 'small' has 4 bytes");
  says([&] { (void)p.wait(); }, "it has not been started");
  const auto drops = p.topic<std::uint32_t>({.name = "drops", .when_full = WhenFull::kDropOldest});
  says(
      [&] {
        p.run(on_host::source("s", nothing).into(drops), on_host::map("m", drops, b, Nothing{}),
              on_host::items("t", sink).from(b));
      },
      "map 'm' takes from it");
  // What is dropped would never be done, and a loop ends when all that has come to it is.
  says(
      [&] {
        p.run(on_host::source("s", nothing).into(drops), on_host::items("l", sink).from(drops, a).into(a));
      },
      "'drops' drops the oldest frame");
  expect_error(
      [&] {
        p.run(on_host::source("s", nothing).into(a),
              on_device::items("l", Round{b, b}).from(a, b).into(b).at_end(EmitOne{b}));
      },
      PipelineError::Reason::kMisuse, {"stage 'l' published into 'b' at its end"});
  expect_error(
      [&] {
        p.run(on_host::source("s",
                              [&](auto& stage) {
                                stage.emit(b, 1u);
                                return false;
                              })
                  .into(a),
              on_host::items("t", sink).from(a));
      },
      PipelineError::Reason::kMisuse, {"stage 's' published into 'b'"});
}
TEST(Pipeline, SaysWhoWaitsForWhomWhenNothingMoves) {
  std::atomic<bool> has_hung{false};
  std::string report;
  Options options = small_groups();
  options.hang_after = milliseconds{30};
  options.on_hang = [&](const std::string& text) {
    if (!has_hung.exchange(true)) report = text;
  };
  Pipeline p(device(), options);
  const auto in = p.topic<std::uint32_t>({.name = "in", .frame_bytes = 4, .frames = 4});
  std::uint32_t next = 0, seen = 0;
  p.run(on_host::source("count", Count{in, 20, 1, &next}).into(in),
        on_host::frames("hangs", [&](auto&, const Frame<const std::uint32_t>&) {
          while (seen == 3 && !has_hung) std::this_thread::sleep_for(milliseconds{1});
          ++seen;
        }).from(in));
  EXPECT_EQ(seen, 20u);
  EXPECT_NE(report.find("stage 'count' (host, 1 teams): 'in' is full, and 'hangs' has done 3 of its"),
            std::string::npos)
      << report;
  EXPECT_NE(report.find("stage 'hangs' (host, 1 teams):"), std::string::npos) << report;
}

}  // namespace
}  // namespace esker::testing
