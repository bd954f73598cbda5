// Random schedules: batches of 1 to 5 tasks, the fewest levels at hand, decisions at random, two to four
// domains that take tasks from each other. Whatever the order, results are the same.
#include <gtest/gtest.h>

#include <cstdint>
#include <esker/tasks.hpp>

namespace esker::testing {
namespace {

template <std::uint32_t kTasks>
struct Tiny {
  static constexpr std::uint32_t kBatch = kTasks;
  static constexpr std::uint32_t kHotLevels = 4;
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

#if defined(ESKER_TEST_SANITIZED)
constexpr int kRuns = 300;
#else
constexpr int kRuns = 2000;  // of each batch: 10'000 of each program
#endif

template <std::uint32_t kTasks, class Root, class Check>
void run_in_batches_of(const Root& root, std::uint64_t bytes, const Check& check) {
  tasks::Options options;
  options.memory_bytes = bytes;
  options.domains = 2;
  tasks::ForkJoin<Root, Tiny<kTasks>> run(Device::open("cpu"), options);
  for (int i = 0; i < kRuns; ++i)
    ASSERT_TRUE(check(run, root)) << "batches of " << kTasks << ", run " << i + 1;
}
template <class Root, class Check>
void run_in_all_batches(const Root& root, std::uint64_t bytes, const Check& check) {
  run_in_batches_of<1>(root, bytes, check);
  run_in_batches_of<2>(root, bytes, check);
  run_in_batches_of<3>(root, bytes, check);
  run_in_batches_of<4>(root, bytes, check);
  run_in_batches_of<5>(root, bytes, check);
}

// The least memory: with less of it, pages run short at times, and the run says so.
constexpr std::uint64_t kAmple = 1 << 22, kLittle = 1 << 17;

TEST(TaskSchedules, GiveTheSameResults) {
  for (const std::uint64_t bytes : {kAmple, kLittle})
    run_in_all_batches(Fib{11}, bytes, [](auto& run, const Fib& root) { return run.run(root) == fib(11); });
}
TEST(TaskSchedules, JoinChildrenOfSeveralTypes) {
  for (const std::uint64_t bytes : {kAmple, kLittle})
    run_in_all_batches(Node{150}, bytes, [](auto& run, const Node& root) { return run.run(root) == 150; });
}
TEST(TaskSchedules, RunEachTaskOnceWhereNothingWaits) {
  for (const std::uint64_t bytes : {kAmple, kLittle}) {
    run_in_all_batches(Pieces{200}, bytes, [](auto& run, const Pieces& root) {
      run.run(root);
      return run.report().sum == 200 && run.report().tasks == 399;
    });
  }
}

}  // namespace
}  // namespace esker::testing
