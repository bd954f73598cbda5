// Pipelines of users who ask for what cannot be, whose functions throw, or who publish what they must not:
// each gets an error that says so, and a pipeline that can run.
#include <esker/device.hpp>
#include <esker/error.hpp>
#include <esker/pipeline.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "../device/gtest.hpp"
#include "counting.hpp"

namespace esker::testing {
namespace {

using namespace pipeline;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint32_t kSome = 100;

Topic<std::uint32_t> small(Pipeline& p, const char* name) {
  return p.topic<std::uint32_t>({.name = name, .frame_bytes = 40, .frames = 4});
}
auto sink(std::uint64_t* seen = nullptr) {
  return [seen](auto&, const Frame<const std::uint32_t>& frame) {
    if (seen != nullptr) *seen += frame.count;
  };
}
/// Runs whole, as if nothing had been before.
void expect_it_runs(Pipeline& p, Topic<std::uint32_t> a) {
  std::uint32_t next = 0;
  std::uint64_t seen = 0;
  p.run(on_host::source("count", Count{a, kSome, 10, &next}).into(a),
        on_host::frames("sink", sink(&seen)).from(a));
  EXPECT_EQ(seen, kSome * 10);
}
template <class Run>
std::string misuse(const Run& run) {
  try {
    run();
  } catch (const PipelineError& error) {
    EXPECT_EQ(error.reason(), PipelineError::Reason::kMisuse);
    return error.what();
  }
  return "nothing was thrown";
}
#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

// --- What is emitted comes in time, though its stage has more to do.

/// Emits one item, of the frame 3, and then works on the others.
struct EmitOnce {
  Topic<std::uint32_t> to;
  ESKER_HD void operator()(auto& stage, const Frame<const std::uint32_t>& frame) const {
    if (frame.number == 3 && stage.lane() == 0) stage.emit(to, 7u);
    for (volatile int i = 0; i < 20'000;) {
      i = i + 1;
    }
  }
};
TEST(HostilePipelines, AStageThatIsBusyFlushesWhatIsOld) {
  Pipeline p(Device::open(), small_groups());
  const auto a = small(p, "a"), b = p.topic<std::uint32_t>({.name = "b", .frame_bytes = 400});
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{60};
  std::uint32_t next = 0;
  std::atomic<bool> has_come{false};
  bool came_in_time = false;
  p.run(on_host::source("count",
                        [&](auto& stage) {
                          came_in_time = has_come;
                          if (came_in_time || std::chrono::steady_clock::now() > until) return false;
                          return Count{a, ~0u, 10, &next}(stage);
                        })
            .into(a),
        on_device::frames("once", EmitOnce{b}).from(a).into(b).workers(1),
        on_host::items("late", [&](auto&, const std::uint32_t&) { has_come = true; }).from(b));
  EXPECT_TRUE(came_in_time) << "it came at the end";
}

// --- Times without end.

TEST(HostilePipelines, TakeTheLongestTimes) {
  Options options = small_groups();
  std::atomic<std::uint32_t> reports{0};
  options.hang_after = milliseconds::max();
  options.on_hang = [&](const std::string&) { ++reports; };
  Pipeline p(Device::open(), options);
  const auto a =
      p.topic<std::uint32_t>({.name = "a", .frame_bytes = 4096, .flush_after = microseconds::max()});
  std::uint32_t given = 0;
  p.start(on_host::source("slow",
                          [&](auto& stage) {
                            stage.emit(a, given++);
                            std::this_thread::sleep_for(milliseconds{1});
                            return true;
                          })
              .into(a),
          on_host::frames("sink", sink()).from(a));
  std::this_thread::sleep_for(milliseconds{20});
  EXPECT_TRUE(p.drain(milliseconds::max()));
  p.wait();
  EXPECT_EQ(p.report().topics[0].frames, given / 1024 + 1);
  EXPECT_EQ(reports, 0u);
}

// --- Functions that throw where nobody expects it.

struct ThrowsWhenCopied {
  int* copies;
  explicit ThrowsWhenCopied(int* at) : copies{at} {}
  ThrowsWhenCopied(const ThrowsWhenCopied& other) : copies{other.copies} {
    if (--*copies == 0) throw std::runtime_error("no copy");
  }
  bool operator()(auto&) const { return false; }
};
TEST(HostilePipelines, RunAfterAStartThatHasThrown) {
  Pipeline p(Device::open(), small_groups());
  const auto a = small(p, "a");
  int copies = 1000, thrown = 0;
  std::uint64_t seen = 0;
  const auto source = on_host::source("source", ThrowsWhenCopied{&copies}).into(a);
  for (int which = 1; which < 8; ++which) {
    copies = which;
    try {
      p.run(source, on_host::frames("sink", sink(&seen)).from(a));
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "no copy");
      ++thrown;
    }
    expect_it_runs(p, a);
  }
  EXPECT_GT(thrown, 0);
}
struct FailEach {
  ESKER_HD void operator()(auto& stage, const Frame<const std::uint32_t>&, Frame<std::uint32_t>&) const {
    if (stage.lane() == 0) stage.fail_frame(1);
  }
};
TEST(HostilePipelines, WhatOnFrameErrorThrowsEndsTheRun) {
  Options options = small_groups();
  std::atomic<int> calls{0};
  options.on_frame_error = [&](const FrameError&) {
    ++calls;
    throw std::runtime_error("of the handler");
  };
  Pipeline p(Device::open(), options);
  const auto a = small(p, "a"), b = small(p, "b");
  std::uint32_t next = 0;
  EXPECT_THROW(p.run(on_host::source("count", Count{a, kSome, 10, &next}).into(a),
                     on_device::map("fail", a, b, FailEach{}), on_host::frames("sink", sink()).from(b)),
               std::runtime_error);
  EXPECT_EQ(calls, 1);
  expect_it_runs(p, a);
}
TEST(HostilePipelines, WhatOnHangThrowsEndsTheRun) {
  Options options = small_groups();
  options.hang_after = milliseconds{20};
  options.on_hang = [](const std::string&) { throw std::runtime_error("of the handler"); };
  Pipeline p(Device::open(), options);
  const auto a = small(p, "a");
  EXPECT_THROW(p.run(on_host::source("stuck",
                                     [](auto& stage) {
                                       while (!stage.stop_requested())
                                         std::this_thread::sleep_for(milliseconds{1});
                                       return false;
                                     })
                         .into(a),
                     on_host::frames("sink", sink()).from(a)),
               std::runtime_error);
}
TEST(HostilePipelines, OnFrameErrorGetsEachOfManyFailures) {
  constexpr std::uint32_t kFailures = 3000;
  Options options = small_groups();
  std::atomic<std::uint32_t> calls{0};
  options.on_frame_error = [&](const FrameError&) { ++calls; };
  Pipeline p(Device::open(), options);
  const auto a = small(p, "a"), b = small(p, "b");
  std::uint32_t next = 0;
  // No faster than they are passed on.
  p.run(on_host::source("count",
                        [&](auto& stage) {
                          while (next > calls + 500) std::this_thread::yield();
                          return Count{a, kFailures, 10, &next}(stage);
                        })
            .into(a),
        on_device::map("fail", a, b, FailEach{}), on_host::frames("sink", sink()).from(b));
  EXPECT_EQ(calls, kFailures);
  EXPECT_EQ(p.report().failed_frames, kFailures);
}

// --- Frames that are not as they must be.

TEST(HostilePipelines, AFrameHasNoMoreItemsThanItHasRoomFor) {
  Pipeline p(Device::open(), small_groups());
  const auto a = small(p, "a");
  for (const std::uint32_t count : {11u, 100'000'000u, ~0u}) {
    const std::string why = misuse([&] {
      p.run(on_host::source("source",
                            [&](auto& stage) {
                              auto frame = stage.open(a);
                              if (frame.data == nullptr) return false;
                              frame.count = count;
                              stage.publish(a, frame);
                              return false;
                            })
                .into(a),
            on_host::frames("sink", sink()).from(a));
    });
    EXPECT_SAYS(why, "stage 'source' published a frame of " + std::to_string(count) + " items into 'a'");
    EXPECT_SAYS(why, "room for 10");
  }
  expect_it_runs(p, a);
}
struct TooMany {
  ESKER_HD void operator()(auto&, const Frame<const std::uint32_t>&, Frame<std::uint32_t>& out) const {
    out.count = 11;
  }
};
TEST(HostilePipelines, NorHasAMapsFrame) {
  Pipeline p(Device::open(), small_groups());
  const auto a = small(p, "a"), b = small(p, "b");
  std::uint32_t next = 0;
  const std::string why = misuse([&] {
    p.run(on_host::source("count", Count{a, kSome, 10, &next}).into(a),
          on_device::map("more", a, b, TooMany{}), on_host::frames("sink", sink()).from(b));
  });
  EXPECT_SAYS(why, "stage 'more' published a frame of 11 items into 'b'");
}
TEST(HostilePipelines, AFrameGoesWhereTheStageSaysThatItPublishes) {
  Pipeline p(Device::open(), small_groups());
  const auto a = small(p, "a"), b = small(p, "b");
  std::uint32_t next = 0;
  const std::string why = misuse([&] {
    p.run(on_host::source("source",
                          [&](auto& stage) {
                            auto frame = stage.open(a);
                            stage.publish(b, frame);
                            return false;
                          })
              .into(a),
          on_host::source("other", Count{b, kSome, 10, &next}).into(b),
          on_host::frames("sink", sink()).from(a), on_host::frames("another", sink()).from(b));
  });
  EXPECT_SAYS(why, "stage 'source' published into 'b', which it does not name");
}
struct EmitInto {
  Topic<std::uint32_t> to;
  ESKER_HD void operator()(auto& stage, const std::uint32_t& n) const { stage.emit(to, n); }
};
TEST(HostilePipelines, ATopicOfAnotherPipelineIsNamed) {
  Pipeline p(Device::open(), small_groups()), other(Device::open(), small_groups());
  const auto a = small(p, "a"), b = small(p, "b"), foreign = small(other, "foreign");
  std::uint32_t next = 0;
  const std::string of_device = misuse([&] {
    p.run(on_host::source("count", Count{a, kSome, 10, &next}).into(a),
          on_device::items("device", EmitInto{foreign}).from(a).into(b),
          on_host::frames("sink", sink()).from(b));
  });
  EXPECT_SAYS(of_device, "stage 'device' published into topic 0 of another pipeline");
  const std::string of_host = misuse([&] {
    p.run(on_host::source("host",
                          [&](auto& stage) {
                            auto frame = stage.open(foreign);
                            return frame.data != nullptr;
                          })
              .into(a),
          on_host::frames("sink", sink()).from(a));
  });
  EXPECT_SAYS(of_host, "stage 'host' published into topic 0 of another pipeline");
  expect_it_runs(p, a);
}

// --- Numbers that are too large.

struct AddOne {
  ESKER_HD void operator()(auto& stage, const Frame<const std::uint32_t>& in,
                           Frame<std::uint32_t>& out) const {
    for (std::uint32_t i = stage.lane(); i < in.count; i += stage.lanes()) out[i] = in[i] + 1;
  }
};
TEST(HostilePipelines, EachItemIsInOnePartOfManyMore) {
  Pipeline p(Device::open(), small_groups());
  const auto a = p.topic<std::uint32_t>({.name = "a", .frame_bytes = 400, .frames = 4}),
             b = p.topic<std::uint32_t>({.name = "b", .frame_bytes = 400, .frames = 4});
  std::uint32_t next = 0;
  std::uint64_t seen = 0, sum = 0;
  p.run(on_host::source("count", Count{a, 4, 100, &next}).into(a),
        on_device::map("add", a, b, AddOne{}).parts(50),
        on_host::items("sink", [&](auto&, const std::uint32_t& n) { ++seen, sum += n; }).from(b));
  EXPECT_EQ(seen, 400u);
  EXPECT_EQ(sum, 400u * 401 / 2);
  EXPECT_EQ(p.report().topics[0].bytes, 4u * 400);
}
TEST(HostilePipelines, RefuseNumbersThatCannotBe) {
  const auto refusal = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  for (const std::uint32_t lanes : {0u, 2048u}) {
    Options options;
    options.group_lanes = lanes;
    EXPECT_SAYS(refusal([&] { Pipeline(Device::open(), options); }),
                "group_lanes is " + std::to_string(lanes));
  }
  Pipeline p(Device::open(), small_groups());
  const auto a = small(p, "a"), b = small(p, "b");
  std::uint32_t next = 0;
  for (const std::uint32_t device : {1u, ~0u}) {
    EXPECT_SAYS(refusal([&] {
                  p.run(on_host::source("count", Count{a, 1, 1, &next}).into(a),
                        on_device::map("add", a, b, AddOne{}).on(device),
                        on_host::frames("sink", sink()).from(b));
                }),
                "stage 'add' is on device");
  }
}

// --- The end, and what the report says.

TEST(HostilePipelines, AStopAfterTheEndIsNone) {
  Pipeline p(Device::open(), small_groups());
  const auto a = small(p, "a");
  std::uint32_t next = 0;
  std::uint64_t seen = 0;
  p.start(on_host::source("count", Count{a, kSome, 10, &next}).into(a),
          on_host::frames("sink", sink(&seen)).from(a));
  EXPECT_TRUE(p.drain(milliseconds{60'000}));
  p.stop();
  EXPECT_NO_THROW(p.wait());
  EXPECT_EQ(seen, std::uint64_t{next} * 10);
}
TEST(HostilePipelines, TheReportNamesTheInputThatWasWaitedFor) {
  Pipeline p(Device::open(), small_groups());
  const auto outside = small(p, "outside"), inside = small(p, "inside");
  std::uint32_t given = 0;
  p.run(on_host::source("slow",
                        [&](auto& stage) {
                          std::this_thread::sleep_for(milliseconds{2});
                          stage.emit(outside, given);
                          return ++given < 20;
                        })
            .into(outside),
        on_host::items("loop",
                       [&](auto& stage, const std::uint32_t& n) {
                         if (n < 100) stage.emit(inside, 100 + n);
                       })
            .from(outside, inside)
            .into(inside));
  const auto& stage = p.report().stages[1];
  EXPECT_EQ(stage.inputs[0], "outside");
  EXPECT_GT(stage.starved_of[0], stage.starved_of[1]);
}
TEST(HostilePipelines, WhatWasDroppedIsNotWaitedFor) {
  Options options = small_groups();
  std::string report;
  options.hang_after = milliseconds{50};
  options.on_hang = [&](const std::string& text) { report = report.empty() ? text : report; };
  Pipeline p(Device::open(), options);
  const auto a = p.topic<std::uint32_t>(
      {.name = "a", .frame_bytes = 4, .frames = 4, .when_full = WhenFull::kDropOldest});
  std::uint32_t next = 0;
  p.run(on_host::source("count",
                        [&](auto& stage) {
                          if (next < kSome) {
                            stage.emit(a, next++);
                            return true;
                          }
                          std::this_thread::sleep_for(milliseconds{300});
                          return false;
                        })
            .into(a),
        on_host::frames("sink", sink()).from(a));
  EXPECT_EQ(report.find("are not done"), std::string::npos) << report;
}

#if !defined(ESKER_TEST_SANITIZED) && !defined(ESKER_TEST_SIMULATED) && !defined(ESKER_TEST_CUDA) && \
    !defined(ESKER_TEST_HIP)
/// In a process of its own: a user who may have no more threads than there are.
void run_without_threads() {
  const rlimit none{1, 1};
  if (setrlimit(RLIMIT_NPROC, &none) != 0 || (getuid() == 0 && setuid(65534) != 0)) std::_Exit(2);
  Pipeline p(Device::open(), small_groups());
  const auto a = small(p, "a");
  std::uint32_t next = 0;
  try {
    p.run(on_host::source("count", Count{a, kSome, 10, &next}).into(a),
          on_host::frames("sink", sink()).from(a));
  } catch (const Error& error) {
    std::fputs(error.what(), stderr);
    std::exit(3);
  }
}
TEST(HostilePipelines, WithoutThreadsThereIsAnError) {
  EXPECT_EXIT(run_without_threads(), ::testing::ExitedWithCode(3),
              "its host stages have 2 threads, and thread 1");
}
#endif

}  // namespace
}  // namespace esker::testing
