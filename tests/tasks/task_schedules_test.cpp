// Random schedules: batches of 1 to 5 tasks, the fewest levels at hand, decisions at random, domains that
// take tasks from each other. Whatever the order, results are the same.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <esker/tasks.hpp>

#include "both_task.hpp"

namespace esker::testing {
namespace {

template <std::uint32_t kTasks>
struct Tiny {
  static constexpr std::uint32_t kBatch = kTasks;
  static constexpr std::uint32_t kHotSegments = 4;
  static constexpr bool kRandom = true;
};

struct Fib {
  static constexpr int kMaxSpawns = 2;
  int n;
  void operator()(auto& task) const {
    if (n < 2) return task.give(n);
    task.spawn(Fib{n - 1}, Fib{n - 2}).then([](auto& then, long a, long b) { then.give(a + b); });
  }
};
long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

// Children of two types, a continuation that spawns, and results of two sizes.
struct Leaf;
struct Node {
  using Result = std::uint32_t;
  using Spawns = tasks::Types<Node, Leaf>;
  static constexpr int kMaxSpawns = 3;
  std::uint32_t n;
  void operator()(auto& task) const;
};
struct Leaf {
  struct Result {
    std::uint64_t value, squared, zero;
  };
  static constexpr int kMaxSpawns = 0;
  std::uint64_t n;
  void operator()(auto& task) const { task.give(Result{n, n * n, 0}); }
};
void Node::operator()(auto& task) const {
  if (n < 2) return task.give(n);
  task.spawn(Node{n / 2}, Leaf{n}, Node{n - n / 2})
      .then([n = n](auto& then, std::uint32_t a, const Leaf::Result& leaf, std::uint32_t b) {
        then.spawn(Leaf{leaf.squared - std::uint64_t{n} * n + a})
            .then([b](auto& last, const Leaf::Result& again) {
              last.give(static_cast<std::uint32_t>(again.value) + b);
            });
      });
}

// Nothing waits: the sum is all there is.
struct Pieces {
  using Result = void;
  static constexpr int kMaxSpawns = 2;
  std::uint32_t n;
  void operator()(auto& task) const {
    if (n == 1) return task.add(1);
    task.spawn(Pieces{n / 2});
    task.spawn(Pieces{n - n / 2});
  }
};

// Of each batch and memory, so ten times as many of each program.
#if defined(ESKER_TEST_MATRIX)
constexpr int kRuns = 1000;
#elif defined(ESKER_TEST_SANITIZED)
constexpr int kRuns = 10;
#else
constexpr int kRuns = 60;
#endif

constexpr std::uint64_t kAmple = 1 << 22;
constexpr std::uint64_t kLittle = 1 << 15;  // at times it is too little, and the run says so

/// Over all runs of a program: that tasks changed hands, or nothing was shown.
struct Seen {
  std::uint64_t given = 0, suspended = 0, right = 0, too_little = 0;
};

template <std::uint32_t kTasks, class Root, class Check>
void run_in_batches_of(const Root& root, const Check& check, Seen& seen) {
  for (const std::uint64_t bytes : {kAmple, kLittle}) {
    tasks::Options options;
    options.memory_bytes = bytes;
    options.domains = 4;
    tasks::ForkJoin<Root, Tiny<kTasks>> run(Device::open("cpu"), options);
    for (int i = 0; i < kRuns; ++i) {
      try {
        ASSERT_TRUE(check(run, root)) << "batches of " << kTasks << ", run " << i + 1;
        ++seen.right;
      } catch (const tasks::TaskError& error) {
        ASSERT_EQ(error.reason(), tasks::TaskError::Reason::kOutOfMemory);
        ASSERT_EQ(bytes, kLittle) << "there was memory enough";
        ++seen.too_little;
      }
      seen.given += run.report().given;
      seen.suspended += run.report().suspended;
    }
  }
}
template <class Root, class Check>
void run_in_all_batches(const Root& root, const Check& check, bool joins = true) {
  Seen seen;
  run_in_batches_of<1>(root, check, seen);
  run_in_batches_of<2>(root, check, seen);
  run_in_batches_of<3>(root, check, seen);
  run_in_batches_of<4>(root, check, seen);
  run_in_batches_of<5>(root, check, seen);
  std::printf("%llu right, %llu with too little memory, %llu bundles given, %llu stacks left\n",
              static_cast<unsigned long long>(seen.right), static_cast<unsigned long long>(seen.too_little),
              static_cast<unsigned long long>(seen.given), static_cast<unsigned long long>(seen.suspended));
  EXPECT_GT(seen.given, 1u * kRuns);
  EXPECT_EQ(seen.suspended > kRuns / 10u, joins);
  EXPECT_GT(seen.right, seen.too_little);
}

TEST(TaskSchedules, GiveTheSameResults) {
  run_in_all_batches(Fib{15}, [](auto& run, const Fib& root) { return run.run(root) == fib(15); });
}
TEST(TaskSchedules, JoinChildrenOfSeveralTypes) {
  run_in_all_batches(Node{600}, [](auto& run, const Node& root) { return run.run(root) == 600; });
}
TEST(TaskSchedules, RunTasksOfTheWholeWaveAmongOthers) {
  run_in_all_batches(Whole{14}, [](auto& run, const Whole& root) { return run.run(root) == fib(14); });
}
TEST(TaskSchedules, RunEachTaskOnceWhereNothingWaits) {
  const auto check = [](auto& run, const Pieces& root) {
    run.run(root);
    return run.report().sum == 2000 && run.report().tasks == 3999;
  };
  run_in_all_batches(Pieces{2000}, check, false);
}

}  // namespace
}  // namespace esker::testing
