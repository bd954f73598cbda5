// Memory from the least that is accepted to what is ample, with decisions at random: a run is right, or says
// that its memory was too little. It is never wrong, never stands still, and is never short of
// memory_bound().
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include <esker/tasks.hpp>

#include "../../apps/fib/fib_task.hpp"
#include "../../apps/queens/queens_task.hpp"
#include "../../apps/uts/tree.hpp"
#include "both_task.hpp"

namespace esker::testing {
namespace {

template <std::uint32_t kTasks>
struct Tiny {
  static constexpr std::uint32_t kBatch = kTasks;
  static constexpr std::uint32_t kHotSegments = 4;
  static constexpr bool kRandom = true;
};

// A binomial tree of Unbalanced Tree Search: children `first` to `last` - 1 of a node, and what is below
// them.
struct Row {
  static constexpr std::uint32_t kChildren = 4;
  static constexpr std::uint32_t kThreshold = 0x1a000000;  // of 2^31: a fifth of all nodes have children
  static constexpr int kMaxSpawns = 2;
  uts::Digest parent;
  std::uint32_t first, last;

  static Row of_root() { return {uts::sha1({0, 0, 0, 0, 7}), 0, 30}; }
  Row half(bool is_second) const {
    const std::uint32_t middle = first + (last - first) / 2;
    return {parent, is_second ? middle : first, is_second ? last : middle};
  }
  Row below() const {
    const uts::Digest node = uts::child_of(parent, first);
    return {node, 0, uts::number_of(node) < kThreshold ? kChildren : 0};
  }
  void operator()(auto& task) const {
    if (last - first > 1) {
      return task.spawn(half(false), half(true)).then([](auto& then, long a, long b) { then.give(a + b); });
    }
    const Row children = below();
    if (children.last == 0) return task.give(1);
    task.spawn(children).then([](auto& then, long a) { then.give(a + 1); });
  }
};

/// What a program's tasks find, and how deep they nest, by a recursion on one stack.
struct Known {
  std::uint64_t result;
  std::uint32_t depth;
};
Known known(const fibonacci::Fib& root) {
  if (root.n < 2) return {static_cast<std::uint64_t>(root.n), 1};
  const Known a = known(fibonacci::Fib{root.n - 1}), b = known(fibonacci::Fib{root.n - 2});
  return {a.result + b.result, 1 + std::max(a.depth, b.depth)};
}
Known known(const Whole& root) { return known(fibonacci::Fib{root.n}); }
Known known(const Row& root) {
  if (root.last - root.first > 1) {
    const Known a = known(root.half(false)), b = known(root.half(true));
    return {a.result + b.result, 1 + std::max(a.depth, b.depth)};
  }
  const Row children = root.below();
  if (children.last == 0) return {1, 1};
  const Known below = known(children);
  return {1 + below.result, 1 + below.depth};
}
/// Published: OEIS A000170. A task a column of each row.
Known known(const queens::Board& root) {
  constexpr std::uint64_t kWays[] = {1, 1, 0, 0, 2, 10, 4, 40};
  const auto n = static_cast<std::uint32_t>(__builtin_popcount(root.all));
  return {kWays[n], n * n};
}

// Of each batch and each memory; some ten thousand of each program in the matrix.
#if defined(ESKER_TEST_MATRIX)
constexpr int kRuns = 150;
#elif defined(ESKER_TEST_SANITIZED)
constexpr int kRuns = 3;
#else
constexpr int kRuns = 6;
#endif

struct Seen {
  int right = 0, too_little = 0, sizes = 0;
};

template <class Tasks, class Root>
std::uint64_t result_of(Tasks& tasks, const Root& root) {
  if constexpr (std::is_void_v<typename Tasks::Result>) {
    tasks.run(root);
    return tasks.report().sum;
  } else {
    return static_cast<std::uint64_t>(tasks.run(root));
  }
}

/// What a set of options that has too little names.
template <class Tasks>
std::uint64_t least_bytes(tasks::Options options) {
  options.memory_bytes = 1;
  try {
    const Tasks refused(Device::open("cpu"), options);
  } catch (const Error& error) {
    const std::string message = error.what();
    return std::stoull(message.substr(message.find_last_of(' ') + 1));
  }
  return 0;
}

template <std::uint32_t kTasks, class Root>
void run_in_batches_of(const Root& root, Seen& seen) {
  using Tasks = tasks::ForkJoin<Root, Tiny<kTasks>>;
  const Known expected = known(root);
  tasks::Options options;
  options.domains = 4;
  options.hang_after = std::chrono::seconds{20};
  options.on_hang = [stop = options.stop](const std::string& report) {
    ADD_FAILURE() << report;
    stop.request_stop();
  };
  const auto least = least_bytes<Tasks>(options);
  ASSERT_GT(least, 1u);
  std::uint64_t bound = ~std::uint64_t{0};
  for (std::uint64_t bytes = least; bytes < 2 * bound; bytes += bytes / 4) {
    options.memory_bytes = bytes;
    Tasks run(Device::open("cpu"), options);
    bound = run.memory_bound(expected.depth);
    ++seen.sizes;
    for (int i = 0; i < kRuns; ++i) {
      try {
        ASSERT_EQ(result_of(run, root), expected.result) << bytes << " bytes, run " << i + 1;
        ++seen.right;
      } catch (const tasks::TaskError& error) {
        ASSERT_EQ(error.reason(), tasks::TaskError::Reason::kOutOfMemory) << error.what();
        ASSERT_NE(std::string(error.what()).find("memory_bytes (" + std::to_string(bytes) + ")"),
                  std::string::npos)
            << error.what();
        ASSERT_LT(bytes, bound) << "there was memory enough";
        ++seen.too_little;
      }
      ASSERT_LE(run.report().peak_memory_bytes, std::min(bytes, bound));
    }
  }
}
template <class Root>
Seen run_in_all_batches(const Root& root) {
  Seen seen;
  run_in_batches_of<1>(root, seen);
  run_in_batches_of<2>(root, seen);
  run_in_batches_of<3>(root, seen);
  run_in_batches_of<4>(root, seen);
  run_in_batches_of<5>(root, seen);
  std::printf("%d sizes of memory: %d runs right, %d with too little\n", seen.sizes, seen.right,
              seen.too_little);
  return seen;
}

TEST(TaskCapacities, OfFibAreEnoughOrNamed) {
  const Seen seen = run_in_all_batches(fibonacci::Fib{13});
  EXPECT_GT(seen.too_little, 0);
  EXPECT_GT(seen.right, seen.too_little);
}
TEST(TaskCapacities, OfAnUnbalancedTreeAreEnoughOrNamed) {
  const Seen seen = run_in_all_batches(Row::of_root());
  EXPECT_GT(seen.too_little, 0);
  EXPECT_GT(seen.right, seen.too_little);
}
TEST(TaskCapacities, OfTwoTypesAreEnoughOrNamed) {
  const Seen seen = run_in_all_batches(Whole{12});
  EXPECT_GT(seen.too_little, 0);
  EXPECT_GT(seen.right, seen.too_little);
}
TEST(TaskCapacities, OfQueensAreEnoughOrNamed) {
  const Seen seen = run_in_all_batches(queens::Board::empty(6));
  EXPECT_GT(seen.right, seen.too_little);
}

}  // namespace
}  // namespace esker::testing
