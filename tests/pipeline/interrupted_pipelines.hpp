// Random pipelines that are hit at a random moment: by a stage that throws or fails, by stop(), a token,
// drain() or their end. Each ends soon, says how, leaves nothing behind, and the next one runs.
// ESKER_TEST_RUNS says how many; ESKER_TEST_SEED repeats them, and ESKER_TEST_FIRST begins at one.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "random_pipeline_run.hpp"

namespace esker::testing {
namespace {

using pipeline::PipelineError;
using std::chrono::microseconds;
using std::chrono::milliseconds;

#if defined(ESKER_TEST_MATRIX)
constexpr std::uint32_t kInterruptions = 1000;
#elif defined(ESKER_TEST_SANITIZED)
constexpr std::uint32_t kInterruptions = 8;
#else
constexpr std::uint32_t kInterruptions = 24;
#endif
constexpr Limits kLimits{
    .items = 600, .deliveries = 10'000, .may_reduce = false, .may_drop = false, .may_be_tight = false};

std::set<std::string> entries(const char* folder) {
  std::set<std::string> names;
  DIR* const open = opendir(folder);
  while (const dirent* const entry = readdir(open)) names.insert(entry->d_name);
  closedir(open);
  return names;
}
/// Threads and open files, among these the memory of a simulated GPU. A thread that was joined is there for
/// another moment.
struct Held {
  std::size_t threads = entries("/proc/self/task").size(), files = entries("/proc/self/fd").size();
};
::testing::AssertionResult has_left_nothing(const Held& before) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{100};
  Held now;
  while (now.threads > before.threads && std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
    now = {};
  }
  if (now.threads <= before.threads && now.files <= before.files) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << now.threads << " threads and " << now.files << " files, before "
                                       << before.threads << " and " << before.files;
}

enum class Hit { kThrow, kFail, kFailFrames, kStop, kToken, kDrain, kDrainSoon, kDestroy, kHits };
constexpr const char* kNames[] = {"throws", "fails",      "fails frames",    "is stopped",
                                  "token",  "is drained", "is drained soon", "is destroyed"};

/// How a run ended.
struct End {
  bool is_whole = false, has_thrown = false;
  Thrown thrown{};
  std::unique_ptr<PipelineError> error;
};
End wait_for(pipeline::Pipeline& p) {
  End end;
  try {
    p.wait();
    end.is_whole = true;
  } catch (const Thrown& thrown) {
    end.has_thrown = true;
    end.thrown = thrown;
  } catch (const PipelineError& error) {
    end.error = std::make_unique<PipelineError>(error);
  }
  return end;
}
/// The message names as many lost frames as the report, of which no topic has more than it had.
void expect_lost_frames(const Built& built, const PipelineError& error, const pipeline::Report& report) {
  std::uint64_t lost = 0;
  for (std::size_t t = 0; t < report.topics.size(); ++t) {
    EXPECT_LE(report.topics[t].lost, report.topics[t].frames * built.shape().topics[t].subscribers.size());
    lost += report.topics[t].lost;
  }
  EXPECT_NE(std::string(error.what()).find("; " + std::to_string(lost) + " frames were not done"),
            std::string::npos)
      << error.what() << '\n'
      << report.text();
}

/// One run, hit in a way, then one of the same stages that is left alone.
class Interruption {
 public:
  Interruption(const AnyKinds& kinds, const Shape& shape, Hit hit, std::mt19937_64& random,
               pipeline::Options options)
      : kinds_{kinds}, hit_{hit}, random_{random}, token_{options.stop} {
    options.on_frame_error = [this](const pipeline::FrameError& error) {
      EXPECT_EQ(error.code, StagePlan::kCode);
      ++frame_errors_;
    };
    built_ = std::make_unique<Built>(shape, options);
  }
  /// Whether it was hit before it had ended by itself.
  bool run() {
    built_->reset(all_items(built_->shape()));
    prepare();
    kinds_.start(*built_);
    const bool was_hit = interrupt();
    if (hit_ != Hit::kDestroy && hit_ != Hit::kToken) run_again();
    return was_hit;
  }

 private:
  std::uint32_t below(std::uint64_t n) { return static_cast<std::uint32_t>(random_() % n); }
  void sleep() {
    const std::uint32_t us = below(4) == 0 ? 0 : below(below(2) == 0 ? 300 : 5000);
    std::this_thread::sleep_for(microseconds{us});
  }
  void prepare() {
    const Shape& shape = built_->shape();
    std::vector<std::uint32_t> hit;
    for (std::uint32_t s = 0; s < shape.stages.size(); ++s) {
      const StageShape& stage = shape.stages[s];
      const bool is_host = !stage.is_on_device();
      if (hit_ == Hit::kThrow && is_host) hit.push_back(s);
      if (hit_ == Hit::kFail && !stage.is_source()) hit.push_back(s);
      if (hit_ == Hit::kFailFrames && stage.is_map()) hit.push_back(s);
    }
    if (hit.empty()) return;
    stage_ = hit[below(hit.size())];
    const std::uint64_t items =
        shape.stages[stage_].is_source() ? shape.stages[stage_].items : built_->expected().items(stage_);
    StagePlan& plan = built_->plan(stage_);
    if (hit_ == Hit::kThrow) plan.throw_at = 1 + below(items + 1);
    if (hit_ == Hit::kFail) plan.fail_at = 1 + below(items + 1);
    if (hit_ == Hit::kFailFrames) {
      for (const std::uint32_t s : hit) built_->plan(s).fail_every = 1 + below(5);
    }
  }
  bool interrupt() {
    pipeline::Pipeline& p = built_->pipeline();
    switch (hit_) {
      case Hit::kThrow: {
        const End end = wait_for(p);
        if (end.is_whole) return expect_whole();
        EXPECT_TRUE(end.has_thrown) << end.error->what();
        EXPECT_EQ(end.thrown.stage, stage_);
        return true;
      }
      case Hit::kFail: {
        const End end = wait_for(p);
        if (end.is_whole) return expect_whole();
        expect_error(end, PipelineError::Reason::kFailed);
        EXPECT_EQ(end.error->code(), StagePlan::kCode);
        EXPECT_EQ(end.error->values()[0], stage_);
        EXPECT_NE(std::string(end.error->what()).find("stage '" + built_->shape().name(stage_) + "' failed"),
                  std::string::npos)
            << end.error->what();
        return true;
      }
      case Hit::kFailFrames: {
        const End end = wait_for(p);
        EXPECT_TRUE(end.is_whole);
        if (end.is_whole) expect_whole();
        std::uint64_t failures = 0;
        for (std::uint32_t s = 0; s < built_->shape().stages.size(); ++s)
          failures += built_->total(s, StagePlan::kFailures);
        EXPECT_EQ(p.report().failed_frames, failures);
        // On each side those beyond 1024 that wait are only counted.
        EXPECT_LE(frame_errors_, failures);
        EXPECT_GE(frame_errors_, std::min<std::uint64_t>(failures, 1024));
        return failures != 0;
      }
      case Hit::kStop:
      case Hit::kToken: {
        std::thread hitter([&] {
          sleep();
          if (hit_ == Hit::kStop) {
            p.stop();
          } else {
            token_.request_stop();
          }
        });
        const End end = wait_for(p);
        hitter.join();
        if (end.is_whole) return expect_whole();
        expect_error(end, PipelineError::Reason::kStopped);
        return true;
      }
      case Hit::kDrain: {
        sleep();
        EXPECT_TRUE(p.drain(std::chrono::seconds{300}));
        const End end = wait_for(p);
        EXPECT_TRUE(end.is_whole);
        if (end.is_whole) expect_whole();
        return built_->given() != all_items(built_->shape());
      }
      case Hit::kDrainSoon: {
        sleep();
        const bool has_ended = p.drain(milliseconds{below(2)});
        const End end = wait_for(p);
        EXPECT_TRUE(end.is_whole || !has_ended);
        if (end.is_whole) return expect_whole();
        expect_error(end, PipelineError::Reason::kStopped);
        return true;
      }
      default:
        sleep();
        built_->destroy_pipeline();
        return true;
    }
  }
  void expect_error(const End& end, PipelineError::Reason reason) {
    ASSERT_NE(end.error, nullptr) << (end.has_thrown ? "it has thrown" : "it ended well");
    EXPECT_EQ(end.error->reason(), reason) << end.error->what();
    expect_lost_frames(*built_, *end.error, built_->pipeline().report());
  }
  /// All that sources have given was received, but for what came out of frames that failed. Returns false.
  bool expect_whole() {
    const Model model = run_serially(built_->shape(), built_->given(), ~std::uint64_t{0}, built_->dropped());
    EXPECT_EQ(built_->differences(model, built_->pipeline().report()), "")
        << built_->pipeline().report().text();
    return false;
  }
  void run_again() {
    std::vector<std::uint32_t> few = all_items(built_->shape());
    for (std::uint32_t& items : few) items = std::min(items, 30u);
    for (std::uint32_t s = 0; s < few.size(); ++s) {
      StagePlan& plan = built_->plan(s);
      plan.fail_at = plan.throw_at = plan.fail_every = 0;
    }
    built_->reset(few);
    kinds_.start(*built_);
    const End end = wait_for(built_->pipeline());
    ASSERT_TRUE(end.is_whole) << "again: " << (end.error != nullptr ? end.error->what() : "it has thrown");
    expect_whole();
  }

  const AnyKinds kinds_;
  const Hit hit_;
  std::mt19937_64& random_;
  const pipeline::StopToken token_;
  std::uint32_t stage_ = 0;
  std::uint64_t frame_errors_ = 0;
  std::unique_ptr<Built> built_;
};

TEST(InterruptedPipelines, EndSayHowAndLeaveNothing) {
  const auto first = static_cast<std::uint32_t>(from_environment("ESKER_TEST_FIRST", 0));
  const auto runs = static_cast<std::uint32_t>(from_environment("ESKER_TEST_RUNS", kInterruptions));
  constexpr auto kHits = static_cast<std::uint32_t>(Hit::kHits);
  Watchdog watchdog;
  std::uint32_t hits[kHits] = {};
  std::unique_ptr<Held> before;
  for (std::uint32_t number = first; number < first + runs; ++number) {
    const std::uint64_t seed = mix(program_seed() + number);
    std::mt19937_64 random(mix(seed));
    const auto [kinds, shape] = draw(seed, kLimits);
    const auto hit = static_cast<Hit>(number % kHits);
    const std::string what =
        replay(number) + ", " + kNames[static_cast<std::uint32_t>(hit)] + ": " + shape.describe();
    watchdog.begin(what);
    SCOPED_TRACE(what);
    pipeline::Options options;
    options.hang_after = std::chrono::seconds{10};
    options.on_hang = [&](const std::string& report) {
      std::fprintf(stderr, "%s\n%s\n", what.c_str(), report.c_str());
    };
    if (Interruption(kinds, shape, hit, random, options).run()) ++hits[static_cast<std::uint32_t>(hit)];
    if (before == nullptr) {
      before = std::make_unique<Held>();  // with what a device keeps for the next ones
    } else {
      EXPECT_TRUE(has_left_nothing(*before));
    }
    if (::testing::Test::HasFailure()) return;
  }
  for (std::uint32_t h = 0; h < kHits; ++h) std::printf("%s%u %s", h == 0 ? "" : ", ", hits[h], kNames[h]);
  std::printf(" of %u\n", runs);
  if (runs < 16 * kHits) return;
  for (std::uint32_t h = 0; h < kHits; ++h) EXPECT_GT(hits[h], 0u) << kNames[h];
}

// --- Killed: a process that ends in the middle of a run.

constexpr const char* kKilled = "ESKER_TEST_KILLED";  // the child: says so on its standard output, and runs

TEST(KilledPipelines, DISABLED_RunUntilTheyAre) {
  if (std::getenv(kKilled) == nullptr) return;
  for (std::uint32_t number = 0;; ++number) {
    const auto [kinds, shape] = draw(mix(program_seed() + number), kLimits);
    Built built(shape, {});
    built.reset(all_items(shape));
    kinds.start(built);
    ASSERT_TRUE(number != 0 || write(STDOUT_FILENO, "!", 1) == 1);
    (void)built.pipeline().wait();
  }
}
TEST(KilledPipelines, LeaveNothing) {
#if defined(ESKER_TEST_SANITIZED)
  constexpr std::uint32_t kTimes = 4;
#else
  constexpr std::uint32_t kTimes = 10;
#endif
  const auto times = static_cast<std::uint32_t>(from_environment("ESKER_TEST_RUNS", kTimes));
  const std::set<std::string> shared = entries("/dev/shm");
  std::mt19937_64 random(program_seed());
  for (std::uint32_t number = 0; number < times; ++number) {
    const int signal = number % 2 == 0 ? SIGKILL : SIGTERM;
    const std::string seed = std::to_string(random());
    SCOPED_TRACE("seed of the child: " + seed);
    int pipe[2];
    ASSERT_EQ(pipe2(pipe, O_CLOEXEC), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      setpgid(0, 0);
      (void)prctl(PR_SET_PDEATHSIG, SIGKILL);  // it runs for ever
      setenv(kKilled, "1", 1);
      setenv("ESKER_TEST_SEED", seed.c_str(), 1);
      dup2(pipe[1], STDOUT_FILENO);
      execl("/proc/self/exe", "esker-killed", "--gtest_filter=*RunUntilTheyAre",
            "--gtest_also_run_disabled_tests", static_cast<char*>(nullptr));
      _exit(127);
    }
    close(pipe[1]);
    char last = 0;
    while (last != '!') {
      pollfd ready{pipe[0], POLLIN, 0};
      ASSERT_EQ(poll(&ready, 1, 60'000), 1) << "the child has not begun";
      ASSERT_EQ(read(pipe[0], &last, 1), 1) << "the child has ended";
    }
    std::this_thread::sleep_for(microseconds{random() % 20'000});
    ASSERT_EQ(kill(child, signal), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    EXPECT_EQ(kill(-child, 0), -1) << "a process of it runs";
    close(pipe[0]);
    for (const std::string& name : entries("/dev/shm"))
      EXPECT_TRUE(shared.count(name) != 0 || name.find("esker") == std::string::npos) << name;
  }
}

}  // namespace
}  // namespace esker::testing
