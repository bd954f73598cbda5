// Tasks that spawn and wait: results, voids, several types, continuations that spawn, errors, memory.
#include <esker/device.hpp>
#include <esker/tasks.hpp>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../device/gtest.hpp"

namespace esker::testing {
namespace {

using tasks::ForkJoin;
using tasks::Options;

Device device() { return Device::open(); }

struct Fib {
  static constexpr int kMaxSpawns = 2;
  int n;
  ESKER_HD void operator()(auto& task) const {
    if (n < 2) return task.give(n);
    task.spawn(Fib{n - 1}, Fib{n - 2}).then([](auto& then, long a, long b) { then.give(a + b); });
  }
};
long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

TEST(ForkJoin, GivesTheRootsResult) {
  ForkJoin<Fib> run(device());
  for (int n = 0; n < 22; ++n) ASSERT_EQ(run.run(Fib{n}), fib(n)) << n;
  EXPECT_EQ(run.report().tasks, static_cast<std::uint64_t>(2 * fib(22) - 1));
}

// Results of other types, and what continuations keep.
struct Vector {
  double x, y, z;
};
struct SumOfVectors {
  using Result = Vector;
  static constexpr int kMaxSpawns = 3;
  std::uint32_t first, last;  // below last
  ESKER_HD void operator()(auto& task) const {
    if (last - first <= 2) {
      Vector sum{};
      for (std::uint32_t i = first; i < last; ++i) sum = {sum.x + i, sum.y + 2 * i, sum.z + 1};
      return task.give(sum);
    }
    const std::uint32_t third = (last - first) / 3;
    task.spawn(SumOfVectors{first, first + third}, SumOfVectors{first + third, first + 2 * third},
               SumOfVectors{first + 2 * third, last})
        .then([sum = third * 0.0](auto& then, const Vector& a, const Vector& b, const Vector& c) {
          then.give(Vector{sum + a.x + b.x + c.x, a.y + b.y + c.y, a.z + b.z + c.z});
        });
  }
};
TEST(ForkJoin, GivesResultsOfManyBytesAndKeepsWhatAContinuationCaptures) {
  constexpr std::uint32_t kCount = 5000;
  const Vector sum = tasks::run(device(), SumOfVectors{0, kCount});
  EXPECT_EQ(sum.x, kCount * (kCount - 1) / 2.0);
  EXPECT_EQ(sum.y, kCount * (kCount - 1.0));
  EXPECT_EQ(sum.z, kCount);
}

// Two types that spawn each other, and children of two types at once.
struct Odd;
struct Even {
  using Result = int;
  using Spawns = tasks::Types<Even, Odd>;
  static constexpr int kMaxSpawns = 2;
  int n;
  ESKER_HD void operator()(auto& task) const;
};
struct Odd {
  using Result = long;
  using Spawns = tasks::Types<Even>;
  static constexpr int kMaxSpawns = 1;
  int n;
  ESKER_HD void operator()(auto& task) const {
    task.spawn(Even{n - 1}).then([](auto& then, int below) { then.give(below + 1L); });
  }
};
ESKER_HD void Even::operator()(auto& task) const {
  if (n <= 0) return task.give(1);
  task.spawn(Odd{n - 1}, Even{n - 4}).then([](auto& then, long a, int b) {
    then.give(static_cast<int>(a + b));
  });
}
int even(int n) { return n <= 0 ? 1 : even(n - 2) + 1 + even(n - 4); }
TEST(ForkJoin, RunsTypesThatSpawnEachOther) {
  ForkJoin<Even> run(device());
  for (const int n : {0, 2, 4, 10, 20, 26}) ASSERT_EQ(run.run(Even{n}), even(n)) << n;
}

// Children of a call before the one that then() follows: it waits for them, and gets no result of theirs.
struct Spread {
  static constexpr int kMaxSpawns = 4;
  int n;
  ESKER_HD void operator()(auto& task) const {
    if (n <= 0) return task.give(1);
    task.spawn(Spread{n - 2});
    task.spawn(Spread{n - 2});
    task.spawn(Spread{n - 1}, Spread{0}).then([](auto& then, long a, long b) { then.give(a + 10 * b); });
  }
};
TEST(ForkJoin, ThenGetsTheResultsOfItsOwnChildren) {
  EXPECT_EQ(tasks::run(device(), Spread{1}), 11);
  EXPECT_EQ(tasks::run(device(), Spread{8}), 81);
}

// spawn, sync, spawn, sync: a chain of continuations, each of which spawns what the one before it gave.
struct Chain {
  static constexpr int kMaxSpawns = 1;
  static constexpr std::size_t kKeepBytes = 8;
  int n;
  ESKER_HD void operator()(auto& task) const {
    if (n == 0) return task.give(1);
    task.spawn(Chain{n - 1}).then([n = n](auto& then, long a) {
      then.spawn(Chain{n / 2}).then([a](auto& last, long b) { last.give(a + b); });
    });
  }
};
long chain(int n) { return n == 0 ? 1 : chain(n - 1) + chain(n / 2); }
TEST(ForkJoin, LetsContinuationsSpawn) {
  ForkJoin<Chain> run(device());
  for (const int n : {0, 1, 2, 7, 40}) ASSERT_EQ(run.run(Chain{n}), chain(n)) << n;
}

// Nothing waits, and nothing is given: tasks count themselves.
struct Count {
  using Result = void;
  static constexpr int kMaxSpawns = 2;
  std::uint64_t* counts;
  std::uint32_t first, last;
  ESKER_HD void operator()(auto& task) const {
    if (last - first == 1) {
      ++counts[first];
      return;
    }
    const std::uint32_t middle = first + (last - first) / 2;
    task.spawn(Count{counts, first, middle});
    task.spawn(Count{counts, middle, last});
  }
};
// The same with a continuation, which has no results to get.
struct CountThen : Count {
  static constexpr bool kJoins = true;
  ESKER_HD void operator()(auto& task) const {
    if (last - first == 1) {
      ++counts[first];
      return;
    }
    const std::uint32_t middle = first + (last - first) / 2;
    task.spawn(CountThen{{counts, first, middle}}, CountThen{{counts, middle, last}})
        .then([counts = counts + first, n = last - first](auto&) {
          std::uint64_t sum = 0;
          for (std::uint32_t i = 0; i < n; ++i) sum += counts[i] == 0 ? 1 : 0;
          if (sum != 0) counts[0] = 1000;  // a child has not run
        });
  }
};
template <class Task>
void count_all(Task (*make)(std::uint64_t*, std::uint32_t)) {
  constexpr std::uint32_t kCount = 10'000;
  const Device on = device();
  const auto counts = on.memory<std::uint64_t>(kCount);
  ForkJoin<Task> run(on);
  run.run(make(counts.data(), kCount));
  std::vector<std::uint64_t> seen(kCount);
  on.copy(seen.data(), counts.data(), counts.size_bytes());
  for (std::uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(seen[i], 1u) << i;
  EXPECT_EQ(run.report().tasks, 2u * kCount - 1);
}
TEST(ForkJoin, RunsEachTaskOnceWhereNothingWaits) {
  count_all<Count>([](std::uint64_t* counts, std::uint32_t n) { return Count{counts, 0, n}; });
}
TEST(ForkJoin, ContinuesAfterChildrenThatGiveNothing) {
  count_all<CountThen>([](std::uint64_t* counts, std::uint32_t n) { return CountThen{{counts, 0, n}}; });
}

// A continuation has the results of the children that it was said of, whatever is spawned before and after
// them.
struct Digits {
  static constexpr int kMaxSpawns = 5;
  int n;
  ESKER_HD void operator()(auto& task) const {
    if (n > 0) return task.give(n);
    if (n == 0) {
      task.spawn(Digits{1}, Digits{2});
      task.spawn(Digits{3});
    }
    task.spawn(Digits{4}, Digits{5}).then([](auto& then, long a, long b) { then.give(10 * a + b); });
    if (n == -1) {
      task.spawn(Digits{1}, Digits{2});
      task.spawn(Digits{3});
    }
  }
};
TEST(ForkJoin, ContinuesWithTheChildrenThatItWasSaidOf) {
  EXPECT_EQ(tasks::run(device(), Digits{0}), 45);
  EXPECT_EQ(tasks::run(device(), Digits{-1}), 45);
}

// Deeper than what is at hand, on one domain and on all: levels go to memory and come back.
struct Down {
  static constexpr int kMaxSpawns = 1;
  int n;
  ESKER_HD void operator()(auto& task) const {
    if (n == 0) return task.give(0);
    task.spawn(Down{n - 1}).then([](auto& then, long below) { then.give(below + 1); });
  }
};
TEST(ForkJoin, GoesAsDeepAsMemoryAllows) {
  for (const std::uint32_t domains : {1u, 0u}) {
    Options options;
    options.domains = domains;
    ForkJoin<Down> run(device(), options);
    EXPECT_EQ(run.run(Down{20'000}), 20'000);
    EXPECT_GT(run.report().spilled, 5'000u);  // segments of two levels and more
    EXPECT_GT(run.report().peak_memory_bytes, 1u << 20);
  }
}

// --- What goes wrong ends the run, and leaves the next one alone.

struct Fails {
  static constexpr int kMaxSpawns = 2;
  int n, bad;
  ESKER_HD void operator()(auto& task) const {
    if (n == bad) return task.fail(42, 7, static_cast<std::uint64_t>(n));
    if (n < 2) return task.give(n);
    task.spawn(Fails{n - 1, bad}, Fails{n - 2, bad}).then([](auto& then, long a, long b) {
      then.give(a + b);
    });
  }
};
TEST(ForkJoin, EndsWithWhatATaskHasSaid) {
  ForkJoin<Fails> run(device());
  for (int again = 0; again < 20; ++again) {
    try {
      (void)run.run(Fails{20, again % 10});
      ADD_FAILURE() << "it ended well";
    } catch (const tasks::TaskError& error) {
      EXPECT_EQ(error.kind(), Error::Kind::kTask);
      EXPECT_EQ(error.reason(), tasks::TaskError::Reason::kFailed);
      EXPECT_EQ(error.code(), 42);
      EXPECT_EQ(error.values()[0], 7u);
      EXPECT_EQ(error.values()[1], static_cast<std::uint64_t>(again % 10));
    }
    EXPECT_EQ(run.run(Fails{10, -1}), fib(10));
  }
}

struct Forgets {
  static constexpr int kMaxSpawns = 2;
  int n, how;
  ESKER_HD void operator()(auto& task) const {
    if (n == 0 && how == 0) return;  // gives nothing
    if (n == 0 && how == 1) {
      task.give(1);
      return task.give(2);
    }
    if (n == 0 && how == 2) {
      task.spawn(Forgets{1, 3}, Forgets{1, 3});
      task.spawn(Forgets{1, 3});  // one too many
    }
    if (n == 0 || how == 3) return task.give(1);
    task.spawn(Forgets{n - 1, how}).then([](auto& then, long a) { then.give(a); });
  }
};
TEST(ForkJoin, NamesTasksThatBreakTheirContract) {
  ForkJoin<Forgets> run(device());
  for (const int how : {0, 1, 2}) {
    try {
      (void)run.run(Forgets{3, how});
      ADD_FAILURE() << how << ": it ended well";
    } catch (const tasks::TaskError& error) {
      EXPECT_EQ(error.reason(), tasks::TaskError::Reason::kMisuse);
      const std::string what = error.what();
      EXPECT_NE(what.find(how == 2   ? "spawned 3 children in one call; its kMaxSpawns is 2"
                          : how == 1 ? "2 times"
                                     : "0 times"),
                std::string::npos)
          << what;
    }
  }
  EXPECT_EQ(run.run(Forgets{3, 3}), 1);
}

struct WaitsTwice {
  using Result = void;
  static constexpr bool kJoins = true;
  static constexpr int kMaxSpawns = 2;
  bool is_leaf;
  ESKER_HD void operator()(auto& task) const {
    if (is_leaf) return;
    task.spawn(WaitsTwice{true}).then([](auto& then) { then.add(1); });
    task.spawn(WaitsTwice{true}).then([](auto& then) { then.add(1); });
  }
};
TEST(ForkJoin, NamesATaskWithoutAResultThatWaitsTwice) {
  ForkJoin<WaitsTwice> run(device());
  try {
    run.run(WaitsTwice{false});
    ADD_FAILURE() << "it ended well";
  } catch (const tasks::TaskError& error) {
    EXPECT_EQ(error.reason(), tasks::TaskError::Reason::kMisuse);
    EXPECT_NE(std::string(error.what()).find("2 times"), std::string::npos) << error.what();
  }
}

struct Forever {
  static constexpr int kMaxSpawns = 1;
  ESKER_HD void operator()(auto& task) const {
    task.spawn(Forever{}).then(
        [](auto& then, long) { then.spawn(Forever{}).then([](auto& last, long) { last.give(0); }); });
  }
};
TEST(ForkJoin, SaysThatMemoryIsShort) {
  Options options;
  options.memory_bytes = 1 << 20;
  ForkJoin<Forever> run(device(), options);
  try {
    (void)run.run(Forever{});
    ADD_FAILURE() << "it ended";
  } catch (const tasks::TaskError& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kOutOfMemory);
    EXPECT_EQ(error.reason(), tasks::TaskError::Reason::kOutOfMemory);
    EXPECT_NE(std::string(error.what()).find("memory_bytes (1048576)"), std::string::npos) << error.what();
  }
  options.memory_bytes = 100;
  EXPECT_THROW((void)ForkJoin<Forever>(device(), options), Error);
}

/// Fails, or is short of memory.
struct FailsOrGoesOn {
  static constexpr int kMaxSpawns = 1;
  bool fails;
  ESKER_HD void operator()(auto& task) const {
    if (fails) return task.fail(42, 7, 8);
    task.spawn(FailsOrGoesOn{false}).then([](auto& then, long a) { then.give(a); });
  }
};
TEST(ForkJoin, AnErrorHasNothingOfTheErrorBeforeIt) {
  Options options;
  options.memory_bytes = 1 << 20;
  ForkJoin<FailsOrGoesOn> run(device(), options);
  EXPECT_THROW((void)run.run(FailsOrGoesOn{true}), tasks::TaskError);
  try {
    (void)run.run(FailsOrGoesOn{false});
    ADD_FAILURE() << "it ended";
  } catch (const tasks::TaskError& error) {
    EXPECT_EQ(error.reason(), tasks::TaskError::Reason::kOutOfMemory);
    EXPECT_EQ(error.code(), 0);
    EXPECT_EQ(error.values()[0], 0u);
    EXPECT_EQ(error.values()[1], 0u);
  }
}

// Levels so wide that a GPU's group has no scratchpad for four stacks of them.
struct Wide {
  struct Result {
    std::uint64_t words[8];
  };
  static constexpr int kMaxSpawns = 8;
  std::uint32_t depth;
  ESKER_HD void operator()(auto& task) const {
    if (depth == 0) return task.give(Result{{1, 2, 3, 4, 5, 6, 7, 8}});
    const Wide below{depth - 1};
    task.spawn(below, below, below, below, below, below, below, below)
        .then([](auto& then, const auto&... results) {
          Result sum{};
          for (int w = 0; w < 8; ++w) sum.words[w] = (results.words[w] + ...);
          then.give(sum);
        });
  }
};
TEST(ForkJoin, RunsTasksWithWideLevels) {
  const Wide::Result sum = tasks::run(device(), Wide{4});
  for (std::uint64_t w = 0; w < 8; ++w) EXPECT_EQ(sum.words[w], (w + 1) * 4096);
}

TEST(ForkJoin, HasNoMoreDomainsThanItMay) {
  for (const std::uint32_t domains : {1u, 2u, 3u, 7u, ~0u - 2, ~0u}) {
    Options options;
    options.domains = domains;
    ForkJoin<Fib> run(device(), options);
    EXPECT_EQ(run.run(Fib{12}), 144);
    EXPECT_GE(run.report().domains, 1u);
    EXPECT_LE(run.report().domains, domains);
  }
}

struct Answer {
  static constexpr int kMaxSpawns = 0;
  int n;
  ESKER_HD void operator()(auto& task) const { task.give(n); }
};
TEST(ForkJoin, RunsATaskThatSpawnsNothing) {
  ForkJoin<Answer> run(device());
  for (const int n : {0, 1, -7}) EXPECT_EQ(run.run(Answer{n}), n);
}

#if !defined(ESKER_DEVICE_COMPILER)
struct Throws {
  static constexpr int kMaxSpawns = 2;
  int n, bad;
  void operator()(auto& task) const {
    if (n == bad) throw std::out_of_range("a task's own");
    if (n < 2) return task.give(n);
    task.spawn(Throws{n - 1, bad}, Throws{n - 2, bad}).then([](auto& then, long a, long b) {
      then.give(a + b);
    });
  }
};
TEST(ForkJoin, PassesOnWhatATaskThrows) {
  ForkJoin<Throws> run(device());
  for (int again = 0; again < 20; ++again) {
    EXPECT_THROW((void)run.run(Throws{20, again % 10}), std::out_of_range);
    EXPECT_EQ(run.run(Throws{12, -1}), fib(12));
  }
}
#endif

// Ends only when it is told to.
struct Endless {
  using Result = void;
  static constexpr int kMaxSpawns = 1;
  ESKER_HD void operator()(auto& task) const { task.spawn(Endless{}); }
};
TEST(ForkJoin, StopsWhenItIsAskedTo) {
  Options options;
  ForkJoin<Endless> run(device(), options);
  std::thread asks([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    options.stop.request_stop();
  });
  try {
    run.run(Endless{});
    ADD_FAILURE() << "it ended";
  } catch (const tasks::TaskError& error) {
    EXPECT_EQ(error.reason(), tasks::TaskError::Reason::kStopped);
  }
  asks.join();
}

// The only domain is in a task: nobody but the task looks whether the run is to stop.
struct Looks {
  using Result = void;
  static constexpr int kMaxSpawns = 0;
  ESKER_HD void operator()(auto& task) const {
    while (!task.stop_requested()) {
    }
  }
};
TEST(ForkJoin, TellsTheOnlyDomainsTaskThatAStopWasRequested) {
  Options options;
  options.domains = 1;
  options.stop.request_stop();
  ForkJoin<Looks> run(device(), options);
  try {
    run.run(Looks{});
    ADD_FAILURE() << "it ended well";
  } catch (const tasks::TaskError& error) {
    EXPECT_EQ(error.reason(), tasks::TaskError::Reason::kStopped);
  }
}

}  // namespace
}  // namespace esker::testing
