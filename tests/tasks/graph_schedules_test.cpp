// Random schedules of task graphs: batches and channels of 1 to 5 elements, decisions at random, domains that
// take from each other. Whatever the order, each element is taken once.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <esker/tasks.hpp>
#include <vector>

namespace esker::testing {
namespace {

using tasks::GraphChannel;
using tasks::node;
using tasks::WhenFull;

template <std::uint32_t kElements>
struct Tiny {
  static constexpr std::uint32_t kBatch = kElements;
  static constexpr bool kRandom = true;
};

struct Pair {
  std::uint32_t a, b, sum;
};

// A tree that two nodes grow in turn, and a third one that counts its leaves.
struct Grow {
  GraphChannel<std::uint32_t> other;
  GraphChannel<Pair> leaves;
  void operator()(auto& task, const std::uint32_t& n) const {
    if (n <= 2) return task.spawn(leaves, {n, 2 * n, 3 * n});
    task.spawn(other, n / 2);
    task.spawn(other, n - n / 2);
  }
};
struct Count {
  void operator()(auto& task, const Pair& pair) const {
    task.add(pair.sum == pair.a + pair.b ? pair.a : 1'000'000);
  }
};

#if defined(ESKER_TEST_SANITIZED)
constexpr int kRuns = 20;
#else
constexpr int kRuns = 200;  // of each batch, capacity and way: 10 000 in all
#endif
constexpr std::uint32_t kLeaves = 300;

struct Seen {
  std::uint64_t shared = 0, spilled = 0, inlined = 0, waits = 0;
};

template <std::uint32_t kElements>
void run_in_batches_of(Seen& seen) {
  for (const WhenFull when_full : {WhenFull::kSpill, WhenFull::kInline}) {
    for (const std::uint32_t capacity : {1u, 2u, 3u, 4u, 5u}) {
      tasks::Options options;
      options.memory_bytes = 1 << 18;
      tasks::Graph graph(Device::open("cpu"), options);
      const auto a = graph.channel<std::uint32_t>({"a", capacity, 0, when_full});
      const auto b = graph.channel<std::uint32_t>({"b", capacity, 1, when_full});
      const auto leaves = graph.channel<Pair>({"leaves", capacity, 0, when_full});
      graph.seed(a, std::vector<std::uint32_t>{kLeaves, kLeaves});
      for (int i = 0; i < kRuns; ++i) {
        const tasks::GraphReport& report =
            graph.run_as<Tiny<kElements>>(node(a, Grow{b, leaves}).into(b, leaves),
                                          node(b, Grow{a, leaves}).into(a, leaves), node(leaves, Count{}));
        ASSERT_EQ(report.sum, 2 * kLeaves) << "batches of " << kElements << ", run " << i + 1 << '\n'
                                           << report.text();
        ASSERT_LE(report.peak_memory_bytes, report.memory_bound);
        seen.waits += report.waits;
        for (const auto& channel : report.channels) {
          seen.shared += channel.shared;
          seen.spilled += channel.spilled;
          seen.inlined += channel.inlined;
        }
      }
    }
  }
}

TEST(GraphSchedules, TakeEachElementOnce) {
  Seen seen;
  run_in_batches_of<1>(seen);
  run_in_batches_of<2>(seen);
  run_in_batches_of<3>(seen);
  run_in_batches_of<4>(seen);
  run_in_batches_of<5>(seen);
  std::printf("%llu elements shared, %llu spilled, %llu inline, %llu waits\n",
              static_cast<unsigned long long>(seen.shared), static_cast<unsigned long long>(seen.spilled),
              static_cast<unsigned long long>(seen.inlined), static_cast<unsigned long long>(seen.waits));
  EXPECT_GT(seen.shared, 1000u);
  EXPECT_GT(seen.spilled, 1000u);
  EXPECT_GT(seen.inlined, 1000u);
  EXPECT_GT(seen.waits, 1000u);
}

}  // namespace
}  // namespace esker::testing
