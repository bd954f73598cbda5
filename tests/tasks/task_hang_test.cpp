// Runs in which nothing moves: the report says who does what and who waits for whom, while the run is under
// way, and the run goes on.
#include <esker/device.hpp>
#include <esker/tasks.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "../device/gtest.hpp"
#include "hang_reports.hpp"

namespace esker::testing {
namespace {

using namespace tasks;
Device device() { return Device::open(); }

Options watched(Reports& reports) {
  Options options;
  options.domains = 4;
  options.memory_bytes = 8 << 20;
  options.hang_after = std::chrono::milliseconds{20};
  options.on_hang = std::ref(reports);
  return options;
}

// --- Fork-join.

/// One leaf waits for the host.
struct Stays {
  static constexpr int kMaxSpawns = 2;
  const SystemAtomic<std::uint32_t>* gate;  // null: none of its leaves
  int n;
  ESKER_HD void operator()(auto& task) const {
    if (n == 0) {
      while (gate != nullptr && gate->load_relaxed() == 0) {
      }
      return task.give(1);
    }
    task.spawn(Stays{nullptr, n - 1}, Stays{gate, n - 1}).then([](auto& then, long a, long b) {
      then.give(a + b);
    });
  }
};

TEST(TaskHang, ComesWhileATaskRunsAndTheRunGoesOn) {
  Gate gate(device());
  Reports reports({" domains work, ", "in a batch of tasks of type 0 that has not returned, in segment "},
                  gate);
  ForkJoin<Stays> run(device(), watched(reports));
  for (int i = 0; i < 2; ++i) {
    gate.close();
    EXPECT_EQ(run.run(Stays{gate.word(), 6}), 64);
    const std::string heard = reports.take();
    EXPECT_NE(heard.find("tasks on " + device().name() + ": nothing has moved for 20 ms: 1 of "),
              std::string::npos)
        << heard;
  }
}

TEST(TaskHang, IsNotSoonWhereARunMayStandStillForEver) {
  Options options;
  options.hang_after = std::chrono::milliseconds::max();
  tasks::detail::HangWatch watch(device(), options, "tasks", nullptr, 1, 1, {});
  watch.begin();
  EXPECT_FALSE(watch.was_still());
  EXPECT_GT(watch.interval(), std::chrono::hours{1});
}

TEST(TaskHang, SaysNothingOfRunsThatMove) {
  Options options;
  options.hang_after = std::chrono::seconds{20};
  int reports = 0;
  options.on_hang = [&](const std::string&) { ++reports; };
  ForkJoin<Stays> run(device(), options);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(run.run(Stays{nullptr, 8}), 256);
  EXPECT_EQ(reports, 0);
}

/// Until the run is to end.
struct Looks {
  using Result = void;
  static constexpr int kMaxSpawns = 0;
  bool waits;
  ESKER_HD void operator()(auto& task) const {
    while (waits && !task.stop_requested()) {
    }
    task.add(1);
  }
};
TEST(TaskHang, WhatOnHangThrowsEndsTheRun) {
  Options options;
  options.hang_after = std::chrono::milliseconds{20};
  options.on_hang = [](const std::string&) { throw std::out_of_range("the handler's own"); };
  ForkJoin<Looks> run(device(), options);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(run.run(Looks{true}), std::out_of_range);
    run.run(Looks{false});
    EXPECT_EQ(run.report().sum, 1u);
  }
}

#if !defined(ESKER_DEVICE_COMPILER)
// Decisions at random, so that small trees change hands.
struct Random {
  static constexpr std::uint32_t kBatch = 2;
  static constexpr std::uint32_t kHotSegments = 4;
  static constexpr bool kRandom = true;
};

TEST(TaskHang, NamesStacksThatWait) {
  const std::uint32_t domains = std::min(4u, device().properties().processors);
  if (domains == 1) GTEST_SKIP() << "nobody takes a stack's tasks";
  bool has_seen_a_stack = false;
  for (int i = 0; i < 100 && !has_seen_a_stack; ++i) {
    Gate gate(device());
    Reports reports({"1 of " + std::to_string(domains) + " domains work, " + std::to_string(domains - 1) +
                     " ask for work"},
                    gate);
    ForkJoin<Stays, Random> run(device(), watched(reports));
    EXPECT_EQ(run.run(Stays{gate.word(), 8}), 256);
    has_seen_a_stack =
        reports.take().find(" has left waits for 1 bundles of tasks; its results ") != std::string::npos;
  }
  EXPECT_TRUE(has_seen_a_stack);
}
#endif

// --- Graphs.

struct Square {
  GraphChannel<std::uint64_t> squares;
  const SystemAtomic<std::uint32_t>* gate;
  ESKER_HD void operator()(auto& task, const std::uint32_t& n) const {
    while (n == 0 && gate->load_relaxed() == 0) {
    }
    task.spawn(squares, std::uint64_t{n} * n);
  }
};
struct Sum {
  ESKER_HD void operator()(auto& task, const std::uint64_t& n) const { task.add(n); }
};

TEST(GraphHang, NamesDomainsAndChannelsAndTheRunGoesOn) {
  Gate gate(device());
  Reports reports({"1 of ", " elements of 'numbers' that has not returned; it spawns into 'squares'",
                   "\n  channel 'numbers': 0 of 64 elements, 0 of 10 seeds left",
                   "\n  channel 'squares': 0 of 32 elements", "; waits for 'numbers', which domains "},
                  gate);
  Graph graph(device(), watched(reports));
  const auto numbers =
      graph.channel<std::uint32_t>({.name = "numbers", .capacity = 64, .when_full = WhenFull::kFail});
  const auto squares = graph.channel<std::uint64_t>({.name = "squares", .capacity = 32});
  graph.seed(numbers, std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  for (int i = 0; i < 2; ++i) {
    gate.close();
    const GraphReport& report =
        graph.run(node(numbers, Square{squares, gate.word()}).into(squares), node(squares, Sum{}));
    EXPECT_EQ(report.sum, 285u);
    const std::string heard = reports.take();
    EXPECT_EQ(heard.find("task graph on " + device().name() + ": nothing has moved for 20 ms: 1 of "), 0u)
        << heard;
    EXPECT_NE(heard.find(" look for work"), std::string::npos) << heard;
  }
}

struct LooksForEach {
  ESKER_HD void operator()(auto& task, const std::uint32_t& n) const {
    while (n == 7 && !task.stop_requested()) {
    }
    task.add(n);
  }
};
TEST(GraphHang, WhatOnHangThrowsEndsTheRun) {
  Options options;
  options.memory_bytes = 8 << 20;
  options.hang_after = std::chrono::milliseconds{20};
  options.on_hang = [](const std::string&) { throw std::out_of_range("the handler's own"); };
  Graph graph(device(), options);
  const auto numbers = graph.channel<std::uint32_t>({.name = "numbers"});
  for (int i = 0; i < 2; ++i) {
    graph.seed(numbers, std::vector<std::uint32_t>{1, 7, 2});
    EXPECT_THROW(graph.run(node(numbers, LooksForEach{})), std::out_of_range);
    graph.seed(numbers, std::vector<std::uint32_t>{1, 2});
    EXPECT_EQ(graph.run(node(numbers, LooksForEach{})).sum, 3u);
  }
}

#if !defined(ESKER_DEVICE_COMPILER)
/// Fills the domain's buffer, then the channel, then memory.
struct Fill {
  GraphChannel<std::uint32_t> full;
  void operator()(auto& task, const std::uint32_t& n) const {
    for (std::uint32_t i = 0; i < n; ++i) task.spawn(full, i);
  }
};
struct Keep {
  GraphOutput<std::uint32_t> kept;
  const SystemAtomic<std::uint32_t>* gate;
  void operator()(auto& task, const std::uint32_t& n) const {
    task.spawn(kept, n);
    while (n == 3 && gate->load_relaxed() == 0) {
    }
  }
};

TEST(GraphHang, SaysHowFullChannelsAre) {
  Gate gate(device());
  // Of the 64 elements in the domain's buffer a batch has been taken.
  Reports reports({"1 of 1 domains work, 0 look for work", "at most 32 elements of 'full'",
                   "\n  channel 'first': 0 of 8 elements, ", "\n  channel 'full': 50 of 50 elements, 86 of ",
                   " spilled, 32 in buffers and on stacks of domains 0",
                   "\n  output 'kept': 4 of 1000 elements; waits for 'full', which domains 0 run"},
                  gate);
  Options options = watched(reports);
  options.domains = 1;
  Graph graph(device(), options);
  const auto first = graph.channel<std::uint32_t>({.name = "first", .capacity = 8});
  const auto full = graph.channel<std::uint32_t>({.name = "full", .capacity = 50});
  const auto kept = graph.output<std::uint32_t>("kept", 1000);
  graph.seed(first, std::vector<std::uint32_t>{200});
  (void)graph.run(node(first, Fill{full}).into(full), node(full, Keep{kept, gate.word()}).into(kept));
  EXPECT_EQ(graph.results(kept).size(), 200u);
}
#endif

}  // namespace
}  // namespace esker::testing
