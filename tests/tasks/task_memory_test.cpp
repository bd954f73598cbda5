// Memory of runs: the bound that is stated beforehand, the least that is accepted, what is said of too
// little.
#include <esker/device.hpp>
#include <esker/tasks.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

#include "../device/gtest.hpp"

namespace esker::testing {
namespace {

using tasks::ForkJoin;
using tasks::Options;

Device device() { return Device::open(); }
std::uint64_t domains() { return device().backend() == Backend::kCpu ? 4 : 64; }

struct Fib {
  static constexpr int kMaxSpawns = 2;
  int n;
  ESKER_HD void operator()(auto& task) const {
    if (n < 2) return task.give(n);
    task.spawn(Fib{n - 1}, Fib{n - 2}).then([](auto& then, long a, long b) { then.give(a + b); });
  }
};
long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

// Long branches and short ones: batches are filled up from levels below at each step.
struct Comb {
  using Result = std::uint32_t;
  static constexpr int kMaxSpawns = 3;
  std::uint32_t length, teeth;
  ESKER_HD void operator()(auto& task) const {
    if (length == 0) return task.give(1u);
    const std::uint32_t shorter = length - 1, tooth = shorter < teeth ? shorter : teeth;
    task.spawn(Comb{shorter, teeth}, Comb{tooth, teeth / 4}, Comb{tooth / 2, 0})
        .then([](auto& then, std::uint32_t a, std::uint32_t b, std::uint32_t c) { then.give(a + b + c); });
  }
};
std::uint32_t comb(std::uint32_t length, std::uint32_t teeth) {
  if (length == 0) return 1;
  const std::uint32_t tooth = std::min(length - 1, teeth);
  return comb(length - 1, teeth) + comb(tooth, teeth / 4) + comb(tooth / 2, 0);
}

// Tasks of the whole wave, which are given on one by one, and others.
struct Lone;
struct Whole {
  using Spawns = tasks::Types<Lone, Whole>;
  static constexpr int kMaxSpawns = 2;
  static constexpr bool kWholeWave = true;
  int n;
  ESKER_HD void operator()(auto& task) const;
};
struct Lone {
  using Spawns = Whole::Spawns;
  static constexpr int kMaxSpawns = 2;
  int n;
  ESKER_HD void operator()(auto& task) const {
    if (n < 2) return task.give(n);
    task.spawn(Whole{n - 2}, Lone{n - 1}).then([](auto& then, long a, long b) { then.give(a + b); });
  }
};
ESKER_HD void Whole::operator()(auto& task) const {
  if (n < 2) return task.give(n);
  task.spawn(Whole{n - 2}, Lone{n - 1}).then([](auto& then, long a, long b) { then.give(a + b); });
}

// Nothing waits.
struct Pieces {
  using Result = void;
  static constexpr int kMaxSpawns = 2;
  std::uint32_t n;
  ESKER_HD void operator()(auto& task) const {
    if (n == 1) return task.add(1);
    task.spawn(Pieces{n - (n + 2) / 3});
    task.spawn(Pieces{(n + 2) / 3});
  }
};
std::uint32_t depth_of_pieces(std::uint32_t n) {
  return n == 1 ? 1 : 1 + std::max(depth_of_pieces(n - (n + 2) / 3), depth_of_pieces((n + 2) / 3));
}

/// Runs it with ample memory, and with no more than the bound.
template <class Root, class Check>
void keep_within_bound(const Root& root, std::uint32_t depth, const Check& check) {
  Options options;
  options.domains = static_cast<std::uint32_t>(domains());
  options.memory_bytes = std::uint64_t{256} << 20;
  std::uint64_t bound = 0;
  for (int run = 0; run < 2; ++run) {
    ForkJoin<Root> tasks(device(), options);
    bound = tasks.memory_bound(depth);
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(check(tasks, root)) << options.memory_bytes << " bytes";
      EXPECT_LE(tasks.report().peak_memory_bytes, bound);
    }
    options.memory_bytes = bound;
  }
}

TEST(TaskMemory, StaysWithinTheBound) {
  const auto gives = [](auto expected) {
    return [expected](auto& tasks, const auto& root) { return tasks.run(root) == expected; };
  };
  keep_within_bound(Fib{20}, 20, gives(fib(20)));
  keep_within_bound(Comb{60, 30}, 61, gives(comb(60, 30)));
  keep_within_bound(Whole{12}, 12, gives(fib(12)));
  keep_within_bound(Pieces{3000}, depth_of_pieces(3000), [](auto& tasks, const Pieces& root) {
    tasks.run(root);
    return tasks.report().sum == root.n;
  });
}

TEST(TaskMemory, BoundGrowsWithTheDepthAndIsSurpassedByDeeperRuns) {
  Options options;
  options.domains = 1;
  ForkJoin<Comb> tasks(device(), options);
  const std::uint64_t ten = tasks.memory_bound(10), twenty = tasks.memory_bound(20),
                      all = tasks.memory_bound(2001);
  EXPECT_LT(ten, twenty);
  EXPECT_LT(twenty, all);
  EXPECT_EQ(tasks.run(Comb{2000, 0}), comb(2000, 0));
  EXPECT_GT(tasks.report().peak_memory_bytes, ten);
  EXPECT_LE(tasks.report().peak_memory_bytes, all);
}

TEST(TaskMemory, NamesTheLeastWhichIsAccepted) {
  for (const std::uint32_t most : {1u, 3u, 40u, 0u}) {
    Options options;
    options.domains = most;
    options.memory_bytes = 100;
    std::uint64_t least = 0;
    try {
      ForkJoin<Fib> tasks(device(), options);
      FAIL() << "100 bytes were accepted";
    } catch (const Error& error) {
      const std::string message = error.what(), least_is = "memory_bytes is 100, and the least ";
      ASSERT_NE(message.find(least_is), std::string::npos) << message;
      least = std::stoull(message.substr(message.find_last_of(' ') + 1));
    }
    options.memory_bytes = least - 1;
    EXPECT_THROW(ForkJoin<Fib>(device(), options), Error);
    for (const std::uint64_t more : {0u, 1u, 4u, 100u, 1000u, 5000u, 20000u}) {
      options.memory_bytes = least + more;
      ForkJoin<Fib> tasks(device(), options);
      EXPECT_EQ(tasks.run(Fib{3}), 2) << options.memory_bytes;
      EXPECT_LE(tasks.report().peak_memory_bytes, options.memory_bytes);
    }
  }
}

}  // namespace
}  // namespace esker::testing
