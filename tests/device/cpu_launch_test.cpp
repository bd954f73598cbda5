// The CPU back end: misuse, exceptions, and elections against a queue that fills up.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <esker/device/cpu/launch.hpp>
#include <esker/device/error.hpp>
#include <esker/device/fine_grain_barrier.hpp>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "traffic.hpp"

namespace esker {
namespace {

constexpr GroupExecution kBoth[] = {GroupExecution::kFibers, GroupExecution::kThreads};

/// What the std::logic_error of a misused launch says; "" if there was none.
template <class Kernel>
std::string misuse_of(GroupExecution execution, Kernel kernel) {
  try {
    cpu::launch({8, 8, 4}, execution, kernel);
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

TEST(Misuse, NamesTheLanesThatWaitInDifferentCollectives) {
  for (const GroupExecution execution : kBoth) {
    const std::string text = misuse_of(execution, [](GroupLane& lane) {
      if (lane.lane() < 4) {
        lane.group().sync();
      } else if (lane.lane() < 6) {
        lane.wave().position_among(true);
      } else {
        lane.await("a flag that nobody raises", [] { return false; });
      }
    });
    EXPECT_NE(text.find("lanes 0-3 in group.sync"), std::string::npos) << text;
    EXPECT_NE(text.find("lanes 4-5 in wave 1.position_among"), std::string::npos) << text;
    EXPECT_NE(text.find("lanes 6-7 in a flag that nobody raises"), std::string::npos) << text;
  }
}

TEST(Misuse, NamesTheLanesThatRunDifferentOperationsOfOneView) {
  for (const GroupExecution execution : kBoth) {
    const std::string text = misuse_of(execution, [](GroupLane& lane) {
      if (lane.lane() == 3) {
        lane.group().reduce(1u, Sum{});
      } else {
        lane.group().reduce(1u, Max{});
      }
    });
    EXPECT_NE(text.find("group.reduce(sum)"), std::string::npos) << text;
    EXPECT_NE(text.find("group.reduce(max)"), std::string::npos) << text;
  }
}

TEST(Misuse, BroadcastFromALaneThatReturnedIsReported) {
  for (const GroupExecution execution : kBoth) {
    const std::string text = misuse_of(execution, [](GroupLane& lane) {
      if (lane.lane() == 2) return;
      lane.group().broadcast(lane.lane(), 2);
    });
    EXPECT_NE(text.find("broadcast from lane 2"), std::string::npos) << text;
  }
}

TEST(Misuse, AMemberThatReturnsWithoutLeavingItsBarrierIsReported) {
  for (const GroupExecution execution : kBoth) {
    const std::string text = misuse_of(execution, [](GroupLane& lane) {
      FineGrainBarrier<> barrier(lane, lane.scratch<FineGrainState<>>());
      barrier.join();
      lane.group().sync();
      if (lane.lane() == 5) return;
      barrier.wait();
    });
    EXPECT_NE(text.find("lanes 0-4 in fine-grain barrier"), std::string::npos) << text;
  }
}

/// Counts itself while it lives.
struct Guard {
  explicit Guard(std::atomic<int>& alive) : alive_{alive} { ++alive_; }
  ~Guard() { --alive_; }
  std::atomic<int>& alive_;
};

TEST(Exceptions, OfALaneEndTheLaunchAndUnwindItsSiblings) {
  for (const GroupExecution execution : kBoth) {
    std::atomic<int> alive{0}, groups_begun{0};
    std::string what;
    try {
      cpu::launch({24, 8, 4}, execution, [&](GroupLane& lane) {
        const Guard guard(alive);
        if (lane.lane() == 0) ++groups_begun;
        lane.group().sync();
        if (lane.global_id() == 9) throw std::runtime_error("lane 9 of the launch");
        if (lane.group_id() == 1) lane.await("what lane 9 owes", [] { return false; });
      });
    } catch (const std::runtime_error& error) {
      what = error.what();
    }
    EXPECT_EQ(what, "lane 9 of the launch");
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(groups_begun, 2);

    // The engine that the thread keeps is as good as new.
    std::atomic<int> ran{0};
    cpu::launch({24, 8, 4}, execution, [&](GroupLane& lane) {
      lane.group().sync();
      ++ran;
    });
    EXPECT_EQ(ran, 24);
  }
}

#if !defined(ESKER_TEST_SANITIZED)  // which map more than any limit
TEST(Exceptions, OfALaneWithoutAThreadEndTheLaunchOfThoseThatWaitForIt) {
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  // Stacks of some lanes, and not of all.
  const rlimit few{pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + (std::uint64_t{512} << 20),
                   before.rlim_max};
  std::string what;
  std::atomic<int> alive{0};
  setrlimit(RLIMIT_AS, &few);
  try {
    cpu::launch({1024, 1024}, GroupExecution::kThreads, [&](GroupLane& lane) {
      const Guard guard(alive);
      lane.group().sync();
    });
  } catch (const Error& error) {
    what = error.what();
  }
  setrlimit(RLIMIT_AS, &before);
  EXPECT_NE(what.find("of the 1024 lanes of a group cannot be had"), std::string::npos) << what;
  EXPECT_EQ(alive, 0);
}
#endif

TEST(Exceptions, OfAPlainLoopAreTheCallers) {
  std::uint64_t ran = 0;
  EXPECT_THROW(cpu::launch({100, 8}, GroupExecution::kFibers,
                           [&](Lane lane) {
                             ++ran;
                             if (lane.global_id() == 50) throw std::runtime_error("lane 50");
                           }),
               std::runtime_error);
  EXPECT_EQ(ran, 51u);
}

// The C++ runtime keeps exceptions in flight per OS thread; a fiber that waits in a handler must not
// hand its own to the next fiber.
TEST(Exceptions, StayWithTheLaneThatWaitsInAHandler) {
  for (const GroupExecution execution : kBoth) {
    std::atomic<int> right{0};
    cpu::launch({16, 8, 4}, execution, [&](GroupLane& lane) {
      try {
        throw static_cast<int>(lane.lane());
      } catch (int) {
        lane.group().sync();
        try {
          std::rethrow_exception(std::current_exception());
        } catch (int mine) {
          if (mine == static_cast<int>(lane.lane())) ++right;
        }
        lane.group().sync();
      }
    });
    EXPECT_EQ(right, 16);
  }
}

TEST(Launch, InsideALaneOfALaunchRuns) {
  std::atomic<int> ran{0};
  cpu::launch({8, 4, 4}, GroupExecution::kFibers, [&](GroupLane& outer) {
    outer.group().sync();
    cpu::launch({8, 4, 4}, GroupExecution::kFibers, [&](GroupLane& inner) {
      inner.group().sync();
      ++ran;
    });
    outer.group().sync();
  });
  EXPECT_EQ(ran, 64);
}

TEST(Launch, GroupsOfOneLaunchRunOnSeveralThreads) {
  const LaunchShape shape{1000, 32, 8};
  std::vector<std::atomic<int>> ran(shape.lanes);
  {
    std::vector<std::jthread> workers;
    for (std::uint64_t w = 0; w < 4; ++w) {
      workers.emplace_back([&, w] {
        cpu::run_groups(shape, w * shape.groups() / 4, (w + 1) * shape.groups() / 4, GroupExecution::kFibers,
                        [&](GroupLane& lane) {
                          lane.group().sync();
                          ++ran[lane.global_id()];
                        });
      });
    }
  }
  for (const auto& times : ran) ASSERT_EQ(times, 1);
}

TEST(Fiber, HasRoomForDeepUserCode) {
  cpu::launch({32, 32}, GroupExecution::kFibers, [](GroupLane& lane) {
    volatile char frame[128 * 1024];
    for (std::size_t i = 0; i < sizeof frame; i += 1024) frame[i] = static_cast<char>(lane.lane());
    lane.group().sync();
    for (std::size_t i = 0; i < sizeof frame; i += 1024) {
      if (frame[i] != static_cast<char>(lane.lane())) throw std::runtime_error("another lane's frame");
    }
  });
}

/// Few slots and a consumer beside the kernel: slots are reused, producers wait for each other's.
template <class Kernel>
void expect_delivery_through_few_slots(std::uint32_t slots) {
  for (const testing::Way& way : testing::ways()) {
    if (way.shape.wave_lanes != 4) continue;
    SCOPED_TRACE(way.name());
    testing::QueueMemory memory(slots, 256);
    const testing::Traffic traffic{testing::kSeeds[0]};
    testing::Arrivals arrivals;
    std::atomic<bool> done{false};
    {
      std::jthread consumer([&] {
        for (;;) {
          const bool last_look = done;
          while (arrivals.take(memory.sink().queue)) {
          }
          if (last_look) return;
          std::this_thread::yield();
        }
      });
      struct SayDone {
        std::atomic<bool>& done;
        ~SayDone() { done = true; }
      } const say_done{done};
      cpu::launch(way.shape, way.execution, Kernel{traffic, memory.sink()});
    }
    traffic.expect_each_once(arrivals, way.shape.lanes);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(FewSlots, PerLaneElectionDelivers) { expect_delivery_through_few_slots<testing::SendPerLane>(2); }
TEST(FewSlots, PerWaveElectionDelivers) { expect_delivery_through_few_slots<testing::SendPerWave>(2); }
TEST(FewSlots, PredicatedElectionDelivers) { expect_delivery_through_few_slots<testing::SendPredicated>(1); }
TEST(FewSlots, FineGrainElectionDelivers) { expect_delivery_through_few_slots<testing::SendFineGrain>(2); }
TEST(FewSlots, AutoGroupElectionDelivers) { expect_delivery_through_few_slots<testing::SendAutoGrouped>(1); }

/// Blocks of two columns: one that a lane opens is often full before that lane has taken a column.
TEST(AutoGroupElection, DeliversWhenOthersFillTheBlockThatALaneHasJustOpened) {
  constexpr std::uint32_t kMessages = 200;
  const LaunchShape shape{16, 16, 4};
  for (const GroupExecution execution : kBoth) {
    for (int repetition = 0; repetition < 5; ++repetition) {
      testing::QueueMemory memory(4096, 256);
      cpu::launch(shape, execution, [&](GroupLane& lane) {
        GroupPacker<testing::QueueSink, 2> packer(lane, memory.sink());
        for (std::uint32_t m = 0; m < kMessages; ++m) {
          const std::uint64_t words[] = {testing::message_id(lane.global_id(), m)};
          packer.append(1 + m % 7 / 6, words);
        }
        packer.close();
      });
      testing::Arrivals arrivals;
      while (arrivals.take(memory.sink().queue)) {
      }
      EXPECT_EQ(arrivals.messages(), shape.lanes * kMessages);
      for (std::uint64_t lane = 0; lane < shape.lanes; ++lane) {
        for (std::uint32_t m = 0; m < kMessages; ++m) {
          arrivals.expect_once(testing::message_id(lane, m), 1 + m % 7 / 6, 1);
        }
      }
    }
  }
}

}  // namespace
}  // namespace esker
