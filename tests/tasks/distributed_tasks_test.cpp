// Tasks over PEs, as threads over loopback: balance, joins, placed tasks, errors, ends.
#include <esker/distributed_tasks.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../device/gtest.hpp"
#include "../runtime/pes.hpp"
#include "hang_reports.hpp"

namespace esker::testing {
namespace {

using tasks::DistributedForkJoin;
using tasks::TaskError;

constexpr bool kIsSimulated = detail::kLanesUseHostCores;

/// On a GPU all PEs share it, as threads of one process: few waves each, which run at a time.
tasks::Options few() {
  tasks::Options options;
  options.memory_bytes = 8 << 20;
  options.domains = 4;
  return options;
}

/// A node for each number below 2^depth, and those above it.
struct Node {
  using Result = void;
  static constexpr int kMaxSpawns = 2;
  std::uint32_t depth, number;
  ESKER_HD void operator()(auto& task) const {
    task.add(number);
    if (depth != 0) task.spawn(Node{depth - 1, 2 * number}, Node{depth - 1, 2 * number + 1});
  }
};
std::uint64_t sum_of(std::uint32_t depth) {
  const std::uint64_t numbers = std::uint64_t{2} << depth;
  return numbers * (numbers - 1) / 2;
}

TEST(DistributedForkJoin, CountsATreeOnAnyNumberOfPes) {
  const std::uint32_t depth = kIsSimulated ? 12 : 16;
  for (const std::uint32_t n : {1u, 2u, 3u, 4u}) {
    run_pes(n, [&](Runtime& rt) {
      DistributedForkJoin<Node> tasks(rt, few());
      for (int i = 0; i < 5; ++i) {
        tasks.run(Node{depth, 1});
        ASSERT_EQ(tasks.total().sum, sum_of(depth)) << n << " PEs";
        ASSERT_EQ(tasks.total().tasks, (std::uint64_t{2} << depth) - 1);
        ASSERT_EQ(tasks.total().sent, tasks.total().received);
      }
    });
  }
}

/// Long enough that the other PE comes and asks.
struct Slow {
  using Result = void;
  static constexpr int kMaxSpawns = 2;
  std::uint32_t depth;
  ESKER_HD void operator()(auto& task) const {
    volatile int spent = 0;
    while (spent < 2000) spent = spent + 1;
    task.add(1);
    if (depth != 0) task.spawn(Slow{depth - 1}, Slow{depth - 1});
  }
};
TEST(DistributedForkJoin, GivesWorkToAPeThatHasNone) {
  const std::uint32_t depth = kIsSimulated ? 12 : 15;
  run_pes(2, [&](Runtime& rt) {
    DistributedForkJoin<Slow> tasks(rt, few());
    // A PE that is not running cannot ask: some run is long enough.
    for (int i = 0; i < 100; ++i) {
      tasks.run(Slow{depth});
      ASSERT_EQ(tasks.total().sum, (std::uint64_t{2} << depth) - 1);
      std::uint64_t least = tasks.report().sum;
      rt.all_reduce(std::span(&least, 1), Reduction::kMin);
      if (least == 0) continue;
      ASSERT_NE(tasks.total().sent, 0u);
      return;
    }
    FAIL() << "one PE never got anything";
  });
}

struct Fib {
  static constexpr int kMaxSpawns = 2;
  int n;
  ESKER_HD void operator()(auto& task) const {
    if (n < 2) return task.give(n);
    task.spawn(Fib{n - 1}, Fib{n - 2}).then([](auto& then, long a, long b) { then.give(a + b); });
  }
};
TEST(DistributedForkJoin, JoinsWhatOtherPesGive) {
  constexpr long kFib[] = {0,  1,   1,   2,   3,   5,   8,    13,   21,   34,  55,
                           89, 144, 233, 377, 610, 987, 1597, 2584, 4181, 6765};
  for (const std::uint32_t n : {2u, 4u}) {
    run_pes(n, [&](Runtime& rt) {
      DistributedForkJoin<Fib> tasks(rt, few());
      for (int i = kIsSimulated ? 10 : 0; i <= (kIsSimulated ? 14 : 20); ++i) {
        ASSERT_EQ(tasks.run(Fib{i}), kFib[i]) << i << " on PE " << rt.pe();
      }
    });
  }
}

/// Goes round the PEs, and fails where it is not on the one that it was sent to.
struct Hop {
  using SpawnsAt = tasks::Types<Hop>;
  static constexpr int kMaxSpawns = 3;
  std::uint32_t at, left;
  ESKER_HD void operator()(auto& task) const {
    if (task.pe() != at) return task.fail(1, task.pe(), at);
    if (left == 0) return task.give(1);
    const std::uint32_t n = task.n_pes();
    task.spawn(Hop{at, 0});
    task.spawn_at((at + 1) % n, Hop{(at + 1) % n, left - 1});
    task.spawn_at((at + 2) % n, Hop{(at + 2) % n, left - 1}).then([](auto& then, long last) {
      then.give(last + 1);
    });
  }
};
struct Tour {
  using Spawns = tasks::Types<>;
  using SpawnsAt = tasks::Types<Hop>;
  static constexpr int kMaxSpawns = 8;
  ESKER_HD void operator()(auto& task) const {
    for (std::uint32_t pe = 0; pe + 1 < task.n_pes(); ++pe) task.spawn_at(pe, Hop{pe, 2});
    const std::uint32_t last = task.n_pes() - 1;
    task.spawn_at(last, Hop{last, 4}).then([](auto& then, long hops) { then.give(hops); });
  }
};
TEST(DistributedForkJoin, RunsPlacedTasksOnTheirPesAndJoinsThem) {
  for (const std::uint32_t n : {1u, 2u, 3u}) {
    run_pes(n, [&](Runtime& rt) {
      DistributedForkJoin<Tour> tasks(rt, few());
      for (int i = 0; i < 10; ++i) ASSERT_EQ(tasks.run(Tour{}), 5);
    });
  }
}

/// One on each PE, of which each adds its own number: what it finds by local().
struct Own {
  using Result = void;
  static constexpr int kMaxSpawns = 8;
  using Spawns = tasks::Types<>;
  using SpawnsAt = tasks::Types<Own>;
  bool is_root;
  ESKER_HD void operator()(auto& task) const {
    if (!is_root) return task.add(task.template local<std::uint64_t>());
    for (std::uint32_t pe = 0; pe < task.n_pes(); ++pe) task.spawn_at(pe, Own{false});
  }
};
TEST(DistributedForkJoin, TasksFindWhatTheirPeHas) {
  run_pes(3, [](Runtime& rt) {
    const auto mine = rt.device().memory<std::uint64_t>(1);
    const std::uint64_t value = std::uint64_t{1} << 8 * rt.pe();
    rt.device().copy(mine.data(), &value, sizeof value);
    tasks::Options options = few();
    options.local = mine.data();
    DistributedForkJoin<Own> tasks(rt, options);
    tasks.run(Own{true});
    EXPECT_EQ(tasks.report().sum, value);
    EXPECT_EQ(tasks.total().sum, 0x10101u);
  });
}

/// A task that ends the run on the last PE, while others go on for ever.
struct Endless {
  using Result = void;
  static constexpr int kMaxSpawns = 2;
  using SpawnsAt = tasks::Types<Endless>;
  int what;
  ESKER_HD void operator()(auto& task) const {
    if (what == 1) return task.fail(17, 4, task.pe());
    if (what == 2) {
      task.spawn_at(task.n_pes() - 1, Endless{1});
      task.spawn(Endless{0});
    } else {
      task.spawn(Endless{what});
    }
  }
};
TEST(DistributedForkJoin, AFailingTaskEndsAllWithItsReason) {
  run_pes(3, [](Runtime& rt) {
    DistributedForkJoin<Endless> tasks(rt, few());
    for (int i = 0; i < 5; ++i) {
      try {
        tasks.run(Endless{2});
        FAIL() << "it ended well";
      } catch (const TaskError& error) {
        EXPECT_EQ(error.reason(), TaskError::Reason::kFailed);
        EXPECT_EQ(error.code(), 17);
        EXPECT_EQ(error.values()[0], 4u);
        EXPECT_EQ(error.values()[1], 2u);
        EXPECT_NE(std::string(error.what()).find("PE 2"), std::string::npos) << error.what();
      }
    }
  });
}

TEST(DistributedForkJoin, AnyPeStopsTheRun) {
  run_pes(2, [](Runtime& rt) {
    const tasks::Options options = few();
    DistributedForkJoin<Endless> tasks(rt, options);
    std::thread stopper;
    if (rt.pe() == 1) {
      stopper = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
        options.stop.request_stop();
      });
    }
    try {
      tasks.run(Endless{0});
      ADD_FAILURE() << "it ended well";
    } catch (const TaskError& error) {
      EXPECT_EQ(error.reason(), TaskError::Reason::kStopped);
      EXPECT_NE(std::string(error.what()).find("PE 1"), std::string::npos) << error.what();
    }
    if (stopper.joinable()) stopper.join();
  });
}

struct Beyond {
  using Result = void;
  static constexpr int kMaxSpawns = 1;
  using SpawnsAt = tasks::Types<Beyond>;
  int value;
  ESKER_HD void operator()(auto& task) const { task.spawn_at(task.n_pes() + 4, Beyond{value}); }
};
TEST(DistributedForkJoin, NamesAPeThatIsNotThere) {
  run_pes(2, [](Runtime& rt) {
    DistributedForkJoin<Beyond> tasks(rt, few());
    try {
      tasks.run(Beyond{});
      FAIL() << "it ended well";
    } catch (const TaskError& error) {
      EXPECT_EQ(error.reason(), TaskError::Reason::kMisuse);
      EXPECT_NE(std::string(error.what()).find("on PE 6; PEs are below 2"), std::string::npos)
          << error.what();
    }
  });
}

/// A task of PE 0 that waits for one of PE 1, which waits for the host.
struct Elsewhere {
  using SpawnsAt = tasks::Types<Elsewhere>;
  static constexpr int kMaxSpawns = 1;
  const SystemAtomic<std::uint32_t>* gate;
  bool is_root;
  ESKER_HD void operator()(auto& task) const {
    if (is_root)
      return task.spawn_at(1, Elsewhere{gate, false}).then([](auto& then, long n) { then.give(n + 1); });
    while (gate->load_relaxed() == 0) {
    }
    task.give(1);
  }
};
TEST(DistributedForkJoin, SaysOnEachPeWhoWaitsForWhomWhenNothingMoves) {
  Gate gate(Device::open());
  std::atomic<std::uint32_t> heard{0};  // a bit a PE: the gate opens when both have said it
  run_pes(2, [&](Runtime& rt) {
    const bool is_first = rt.pe() == 0;
    std::vector<std::string> parts{"tasks on PE " + std::to_string(rt.pe()) + " of 2 (here ",
                                   "nothing has moved for 20 ms: "};
    if (is_first) {
      parts.insert(parts.end(),
                   {"\n  parcels of tasks: 1 sent to other PEs, 0 received",
                    "\n  waits for what 1 parcels give that were sent to PE 1", "1 stacks wait"});
    } else {
      parts.insert(parts.end(), {"1 of ", "\n  has 1 parcels of PE 0, which waits for what they give",
                                 "in a batch of tasks of type ", "its results go to another PE"});
    }
    Reports reports(parts, [&] {
      if ((heard.fetch_or(1u << rt.pe()) | 1u << rt.pe()) == 3) gate.open();
    });
    tasks::Options options = few();
    if (is_first) options.hang_after = std::chrono::milliseconds{20};  // it holds on all
    options.on_hang = std::ref(reports);
    DistributedForkJoin<Elsewhere> tasks(rt, options);
    for (int i = 0; i < 2; ++i) {
      if (is_first) {
        gate.close();
        heard = 0;
      }
      rt.barrier_all();
      EXPECT_EQ(tasks.run(Elsewhere{gate.word(), true}), 2);
      EXPECT_NE(reports.take(), "") << "PE " << rt.pe();
    }
  });
}

/// A task of PE 0 that waits for one of PE 1, which waits until the run is to end.
struct LooksElsewhere {
  using Result = void;
  using SpawnsAt = tasks::Types<LooksElsewhere>;
  static constexpr int kMaxSpawns = 1;
  bool is_root, waits;
  ESKER_HD void operator()(auto& task) const {
    if (is_root) return (void)task.spawn_at(1, LooksElsewhere{false, waits});
    while (waits && !task.stop_requested()) {
    }
    task.add(1);
  }
};
TEST(DistributedForkJoin, WhatOnHangThrowsEndsTheRunOnAllPes) {
  if (kIsSimulated) GTEST_SKIP() << "its port runs where no other lane can";
  run_pes(2, [](Runtime& rt) {
    tasks::Options options = few();
    options.hang_after = std::chrono::milliseconds{20};
    options.on_hang = [pe = rt.pe()](const std::string&) {
      if (pe == 1) throw std::out_of_range("the handler's own");
    };
    DistributedForkJoin<LooksElsewhere> tasks(rt, options);
    for (int i = 0; i < 2; ++i) {
      try {
        tasks.run(LooksElsewhere{true, true});
        FAIL() << "it ended well";
      } catch (const TaskError& error) {
        EXPECT_EQ(rt.pe(), 0u);
        EXPECT_EQ(error.reason(), TaskError::Reason::kStopped) << error.what();
        EXPECT_NE(std::string(error.what()).find("PE 1"), std::string::npos) << error.what();
      } catch (const std::out_of_range&) {
        EXPECT_EQ(rt.pe(), 1u);
      }
      tasks.run(LooksElsewhere{true, false});
      EXPECT_EQ(tasks.total().sum, 1u);
    }
  });
}

/// Each call waits on another PE for the next: as many crates as it is deep.
TEST(DistributedForkJoin, TooLongAChainOfPesEndsTheRunAndTheNextIsNotTouched) {
  if (kIsSimulated) GTEST_SKIP() << "thousands of parcels, each through fibers";
  run_pes(2, [](Runtime& rt) {
    tasks::Options options = few();
    options.memory_bytes = 1 << 20;
    DistributedForkJoin<Hop> tasks(rt, options);
    for (int i = 0; i < 2; ++i) {
      try {
        tasks.run(Hop{0, 4000});
        FAIL() << "it ended well";
      } catch (const TaskError& error) {
        EXPECT_EQ(error.reason(), TaskError::Reason::kOutOfMemory) << error.what();
      }
      ASSERT_EQ(tasks.run(Hop{0, 3}), 4);
    }
  });
}

/// One branch that is long, of which each task has a leaf beside it: stacks as deep as the tree.
struct Vine {
  static constexpr int kMaxSpawns = 2;
  int length;
  ESKER_HD void operator()(auto& task) const {
    if (length == 0) return task.give(1);
    task.spawn(Vine{length - 1}, Vine{0}).then([](auto& then, long a, long b) { then.give(a + b); });
  }
};
/// Whether a run on two PEs with so much memory was short of it.
template <class Tasks, class Root>
bool was_short(Tasks& tasks, const Root& root, long expected) {
  try {
    EXPECT_EQ(tasks.run(root), expected);
    return false;
  } catch (const TaskError& error) {
    EXPECT_EQ(error.reason(), TaskError::Reason::kOutOfMemory) << error.what();
    return true;
  }
}
TEST(DistributedForkJoin, IsNeverShortOfMemoryWithinItsBound) {
  constexpr int kLength = 30;
  run_pes(2, [&](Runtime& rt) {
    tasks::Options options = few();
    constexpr std::uint32_t kDepth = kLength + 1;
    std::uint64_t bound = 0;
    {
      options.memory_bytes = 1 << 20;
      DistributedForkJoin<Vine> tasks(rt, options);
      EXPECT_TRUE(was_short(tasks, Vine{4000}, 4001)) << "so the bound says something";
      bound = tasks.memory_bound(kDepth);
      EXPECT_LT(tasks.memory_bound(kDepth / 2), bound);
      EXPECT_GT(bound, tasks::ForkJoin<Vine>(rt.device(), options).memory_bound(kDepth))
          << "stacks wait for other PEs, too";
    }
    options.memory_bytes = bound;
    DistributedForkJoin<Vine> tasks(rt, options);
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(was_short(tasks, Vine{kLength}, kLength + 1));
    EXPECT_LE(tasks.report().peak_memory_bytes, bound);
  });
}

TEST(DistributedForkJoin, IsMadeOnAllPesOrOnNone) {
  run_pes(3, [](Runtime& rt) {
    tasks::Options options = few();
    if (rt.pe() == 1) options.memory_bytes = 100;
    try {
      const DistributedForkJoin<Fib> tasks(rt, options);
      ADD_FAILURE() << "PE " << rt.pe() << " has one";
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(rt.pe() == 1 ? "memory_bytes is 100" : "PE 1 could not"), std::string::npos)
          << message;
    }
    DistributedForkJoin<Fib> tasks(rt, few());
    EXPECT_EQ(tasks.run(Fib{10}), 55);
  });
}

TEST(DistributedForkJoin, KnowsNoBoundOfTasksThatNamePes) {
  run_pes(2, [](Runtime& rt) {
    const DistributedForkJoin<Tour> tasks(rt, few());
    try {
      (void)tasks.memory_bound(10);
      FAIL() << "a bound was stated";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::kConfiguration);
      const std::string message = error.what();
      EXPECT_NE(message.find("(SpawnsAt)"), std::string::npos) << message;
      EXPECT_NE(message.find("peak_memory_bytes"), std::string::npos) << message;
    }
  });
}

#if !defined(ESKER_DEVICE_COMPILER)
/// Decisions at random, batches of one task and gifts as often as somebody asks.
struct Tiny {
  static constexpr std::uint32_t kBatch = 1;
  static constexpr std::uint32_t kHotSegments = 4;
  static constexpr std::uint32_t kBatchesAGift = 1;
  static constexpr bool kRandom = true;
};
TEST(DistributedForkJoin, JoinsInAnyOrder) {
  run_pes(3, [](Runtime& rt) {
    DistributedForkJoin<Fib, Tiny> fibs(rt, few());
    DistributedForkJoin<Tour, Tiny> tours(rt, few());
    DistributedForkJoin<Node, Tiny> nodes(rt, few());
    for (int i = 0; i < 8; ++i) {
      ASSERT_EQ(fibs.run(Fib{11}), 89);
      ASSERT_EQ(tours.run(Tour{}), 5);
      nodes.run(Node{7, 1});
      ASSERT_EQ(nodes.total().sum, sum_of(7));
    }
  });
}

TEST(DistributedForkJoin, IsNeverShortOfMemoryWithinItsBoundInAnyOrder) {
  run_pes(2, [](Runtime& rt) {
    tasks::Options options = few();
    options.memory_bytes = 1 << 16;
    std::uint64_t bound = 0;
    {
      DistributedForkJoin<Vine, Tiny> tasks(rt, options);
      EXPECT_TRUE(was_short(tasks, Vine{300}, 301)) << "so the bound says something";
      bound = tasks.memory_bound(301);
    }
    options.memory_bytes = bound;
    DistributedForkJoin<Vine, Tiny> tasks(rt, options);
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(was_short(tasks, Vine{300}, 301));
  });
}

struct Throws {
  using Result = void;
  static constexpr int kMaxSpawns = 1;
  using SpawnsAt = tasks::Types<Throws>;
  bool is_root;
  void operator()(auto& task) const {
    if (!is_root) throw std::runtime_error("out of cheese");
    task.spawn_at(1, Throws{false});
  }
};
TEST(DistributedForkJoin, WhatATaskThrowsIsThrownOnItsPe) {
  run_pes(2, [](Runtime& rt) {
    DistributedForkJoin<Throws> tasks(rt, few());
    try {
      tasks.run(Throws{true});
      FAIL() << "it ended well";
    } catch (const TaskError& error) {
      EXPECT_EQ(rt.pe(), 0u);
      EXPECT_EQ(error.reason(), TaskError::Reason::kFailed);
      EXPECT_NE(std::string(error.what()).find("PE 1"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("a task threw"), std::string::npos) << error.what();
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(rt.pe(), 1u);
      EXPECT_NE(std::string(error.what()).find("out of cheese"), std::string::npos) << error.what();
    }
  });
}

/// As where MPI was initialised below MPI_THREAD_MULTIPLE: nobody moves letters but run().
TEST(DistributedForkJoin, RunsWhereTheProgramDrivesTheNetwork) {
  loopback::World world(2);
  std::vector<std::thread> pes;
  for (std::uint32_t pe = 0; pe < 2; ++pe) {
    pes.emplace_back([&, pe] {
      Runtime rt(
          tiny_config(),
          detail::Medium{[&](const TransportLimits& limits) { return world.connect(pe, limits); }, false});
      DistributedForkJoin<Tour> tasks(rt, few());
      for (int i = 0; i < 5; ++i) EXPECT_EQ(tasks.run(Tour{}), 5);
    });
  }
  for (std::thread& pe : pes) pe.join();
}

struct Large {
  using Result = void;
  static constexpr int kMaxSpawns = 1;
  char bytes[2000];
  void operator()(auto& /*task*/) const {}
};
TEST(DistributedForkJoin, NamesATaskThatDoesNotFitInALetter) {
  const auto failed =
      Pes(2).run_and_catch([](Runtime& rt) { const DistributedForkJoin<Large> tasks(rt, few()); });
  for (const auto& each : failed) {
    ASSERT_TRUE(each);
    EXPECT_EQ(each->kind, Error::Kind::kConfiguration);
    EXPECT_NE(each->message.find("raise --node-buffer-bytes"), std::string::npos) << each->message;
  }
}

TEST(DistributedForkJoin, EndsWithTheJobWhenAPeLeaves) {
  const auto failed = Pes(2).run_and_catch([](Runtime& rt) {
    DistributedForkJoin<Endless> tasks(rt, few());
    if (rt.pe() == 1) throw std::runtime_error("had enough");
    tasks.run(Endless{0});
  });
  ASSERT_TRUE(failed[0]);
  EXPECT_NE(failed[0]->message.find("PE 1"), std::string::npos) << failed[0]->message;
}
#endif

}  // namespace
}  // namespace esker::testing
