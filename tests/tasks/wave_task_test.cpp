// Tasks that a whole wave runs: what its lanes do together, scratchpad, continuations, and sets in which only
// some types are of that kind.
#include <esker/device.hpp>
#include <esker/tasks.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "../device/gtest.hpp"

namespace esker::testing {
namespace {

using tasks::ForkJoin;
using tasks::Options;

Device device() { return Device::open(); }

/// A row [first, last), which splits until a wave is to do it: each lane adds up some numbers and writes what
/// it has done, and the continuations of those that have split look at it.
struct Row {
  using Result = std::uint64_t;
  static constexpr int kMaxSpawns = 2;
  static constexpr bool kWholeWave = true;
  std::uint32_t* done;  // how often each number was done
  std::uint32_t first, last;

  ESKER_HD void operator()(auto& task) const {
    if (last - first <= 100) {
      std::uint64_t sum = 0;
      task.for_each(last - first, [&](std::uint32_t i) {
        sum += first + i;
        ++done[first + i];
      });
      return task.give(task.wave().reduce(sum, Sum{}));
    }
    const std::uint32_t middle = first + (last - first) / 2;
    task.spawn(Row{done, first, middle}, Row{done, middle, last})
        .then([row = *this](auto& then, std::uint64_t a, std::uint64_t b) {
          std::uint32_t missing = 0;
          then.for_each(row.last - row.first,
                        [&](std::uint32_t i) { missing += row.done[row.first + i] != 1; });
          missing = then.wave().reduce(missing, Sum{});
          if (missing != 0) then.fail(7, missing, row.first);
          then.give(a + b);
        });
  }
};
TEST(WaveTask, DividesItsWorkAmongLanesAndGoesOnWithAllOfThem) {
  constexpr std::uint32_t kCount = 30'000;
  const Device on = device();
  const auto done = on.memory<std::uint32_t>(kCount);
  ForkJoin<Row> run(on);
  EXPECT_EQ(run.run(Row{done.data(), 0, kCount}), std::uint64_t{kCount} * (kCount - 1) / 2);
  std::vector<std::uint32_t> seen(kCount);
  on.copy(seen.data(), done.data(), done.size_bytes());
  for (std::uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(seen[i], 1u) << i;
  EXPECT_EQ(run.report().batches, run.report().tasks);  // one at a time
}

/// Nothing waits: sums are added once a wave, not once a lane.
struct Halves {
  using Result = void;
  static constexpr int kMaxSpawns = 2;
  static constexpr bool kWholeWave = true;
  std::uint32_t n;
  ESKER_HD void operator()(auto& task) const {
    if (n == 1) return task.add(1);
    task.spawn(Halves{n / 2});
    task.spawn(Halves{n - n / 2});
  }
};
TEST(WaveTask, AddsAndSpawnsOnce) {
  ForkJoin<Halves> run(device());
  for (const std::uint32_t n : {1u, 2u, 1000u, 4321u}) {
    run.run(Halves{n});
    ASSERT_EQ(run.report().sum, n);
    ASSERT_EQ(run.report().tasks, 2 * n - 1);
  }
}

/// Counts digits of numbers in scratchpad.
struct Digits {
  struct Result {
    std::uint32_t most, sum;
  };
  struct Scratch {
    std::uint32_t counts[10];
  };
  static constexpr int kMaxSpawns = 3;
  static constexpr bool kWholeWave = true;
  static constexpr std::size_t kScratchBytes = sizeof(Scratch), kKeepBytes = 8;
  std::uint32_t depth;
  ESKER_HD void operator()(auto& task) const {
    Scratch& scratch = task.template scratch<Scratch>();
    task.for_each(10, [&](std::uint32_t d) { scratch.counts[d] = d * (depth + 1); });
    task.sync();
    std::uint32_t most = 0, sum = 0;
    task.for_each(10, [&](std::uint32_t d) {
      const std::uint32_t other = scratch.counts[9 - d];  // another lane's
      most = other > most ? other : most;
      sum += other;
    });
    most = task.wave().reduce(most, Max{});
    sum = task.wave().reduce(sum, Sum{});
    if (depth == 0) return task.give(Result{most, sum});
    const Digits below{depth - 1};
    task.spawn(below, below, below)
        .then([most, sum](auto& then, const Result& a, const Result& b, const Result& c) {
          const std::uint32_t larger = a.most > most ? a.most : most;
          then.give(Result{larger, sum + a.sum + b.sum + c.sum});
        });
  }
};
TEST(WaveTask, HasScratchpad) {
  const Digits::Result result = tasks::run(device(), Digits{6});
  EXPECT_EQ(result.most, 9u * 7);
  std::uint32_t sum = 0, tasks = 1;
  for (std::uint32_t depth = 7; depth-- > 0; tasks *= 3) sum += tasks * 45 * (depth + 1);
  EXPECT_EQ(result.sum, sum);
}

/// Lanes' tasks that spawn wave tasks that spawn lanes' tasks, and continuations of both that spawn again.
struct Lanes;
struct Together {
  using Spawns = tasks::Types<Lanes, Together>;
  static constexpr int kMaxSpawns = 2;
  static constexpr bool kWholeWave = true;
  static constexpr std::size_t kKeepBytes = 16;
  long n;
  ESKER_HD void operator()(auto& task) const;
};
struct Lanes {
  using Spawns = tasks::Types<Lanes, Together>;
  static constexpr int kMaxSpawns = 3;
  static constexpr std::size_t kKeepBytes = 16;
  long n;
  ESKER_HD void operator()(auto& task) const {
    if (n < 2) return task.give(n);
    task.spawn(Lanes{n - 1}, Together{n - 2}, Lanes{n - 3}).then([n = n](auto& then, long a, long b, long c) {
      then.spawn(Together{n / 3}).then([sum = a + b + c](auto& last, long d) { last.give(sum + d); });
    });
  }
};
ESKER_HD void Together::operator()(auto& task) const {
  // Each lane's number, once: what reduce() gives is the same as on one lane.
  const long lanes = task.wave().reduce(long{1}, Sum{});
  if (n < 2) return task.give(n + lanes - static_cast<long>(task.kLanes));
  task.spawn(Lanes{n - 1}, Together{n - 2}).then([n = n](auto& then, long a, long b) {
    then.spawn(Lanes{n / 4}).then([sum = a + b](auto& last, long c) {
      last.give(last.wave().broadcast(sum + c, last.kLanes - 1));
    });
  });
}
long together(long n);
long lanes(long n) { return n < 2 ? n : lanes(n - 1) + together(n - 2) + lanes(n - 3) + together(n / 3); }
long together(long n) { return n < 2 ? n : lanes(n - 1) + together(n - 2) + lanes(n / 4); }
TEST(WaveTask, StandsBesideTasksOfLanes) {
  ForkJoin<Lanes> first(device());
  ForkJoin<Together> second(device());
  for (const long n : {0, 1, 2, 5, 9, 12}) {
    ASSERT_EQ(first.run(Lanes{n}), lanes(n)) << n;
    ASSERT_EQ(second.run(Together{n}), together(n)) << n;
  }
}

struct Down {
  static constexpr int kMaxSpawns = 1;
  static constexpr bool kWholeWave = true;
  int n;
  ESKER_HD void operator()(auto& task) const {
    if (n == 0) return task.give(0);
    task.spawn(Down{n - 1}).then([](auto& then, long below) { then.give(below + 1); });
  }
};
TEST(WaveTask, GoesDeep) {
  ForkJoin<Down> run(device());
  EXPECT_EQ(run.run(Down{5000}), 5000);
  EXPECT_GT(run.report().spilled, 0u);
}

struct Breaks {
  static constexpr int kMaxSpawns = 2;
  static constexpr bool kWholeWave = true;
  int n, how;
  ESKER_HD void operator()(auto& task) const {
    if (n == 0 && how == 0) return;  // gives nothing
    if (n == 0 && how == 1) return task.fail(42, 3, 4);
    if (n == 0 && how == 2) {
      task.spawn(Breaks{1, 3}, Breaks{1, 3});
      task.spawn(Breaks{1, 3});  // one too many
    }
    if (n == 0 || how == 3) return task.give(1);
    task.spawn(Breaks{n - 1, how}).then([](auto& then, long a) { then.give(a); });
  }
};
TEST(WaveTask, NamesWhatBreaksItsContract) {
  ForkJoin<Breaks> run(device());
  for (const int how : {0, 1, 2}) {
    try {
      (void)run.run(Breaks{3, how});
      ADD_FAILURE() << how << ": it ended well";
    } catch (const tasks::TaskError& error) {
      EXPECT_EQ(error.reason(),
                how == 1 ? tasks::TaskError::Reason::kFailed : tasks::TaskError::Reason::kMisuse);
      if (how == 1) {
        EXPECT_EQ(error.code(), 42);
        EXPECT_EQ(error.values()[1], 4u);
      }
      const std::string what = error.what();
      const std::string part = how == 0 ? "0 times" : how == 1 ? "code 42" : "spawned 3 children";
      EXPECT_NE(what.find(part), std::string::npos) << what;
    }
    EXPECT_EQ(run.run(Breaks{3, 3}), 1);
  }
}

}  // namespace
}  // namespace esker::testing
