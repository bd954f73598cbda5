// What lanes and handlers throw. For the CPU alone: code on a GPU cannot throw.
#include <csignal>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include <esker/device/election/per_lane.hpp>
#include <esker/device/election/per_wave.hpp>
#include <esker/device/election/predicated.hpp>

#include "pes.hpp"

namespace esker::testing {
namespace {

TEST(Launch, ThrowsWhatALaneThrowsAndSendsWhatCameBefore) {
  Config config = tiny_config();
  config.package_bytes = 64 * 1024;  // nothing is full when the lane throws
  run_pes(2, config, [](Runtime& rt) {
    const auto words = rt.heap().allocate<std::uint64_t>(1000);
    try {
      rt.launch(1000, [=](WorkItem item) {
        if (item.global_id() == 700) throw std::runtime_error("lane 700");
        shmem_inc(item, &words[item.global_id()], 1 - item.pe());
      });
      ADD_FAILURE() << "no exception";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "lane 28 of group 21 of kernel 'kernel' has thrown: lane 700");
    }
    rt.barrier_all();
    for (std::uint64_t i = 0; i < 700; ++i) ASSERT_EQ(words[i], 1u) << i;  // one lane thread: in order
    for (std::uint64_t i = 700; i < 1000; ++i) ASSERT_EQ(words[i], 0u) << i;
  });
}

// What the group of the lane that throws has gathered and not sent is dropped with its lanes.
TEST(Launch, ThrowsWhatALaneOfAGroupThrowsAndSendsWhatGroupsBeforeSent) {
  for (const GroupExecution execution : {GroupExecution::kFibers, GroupExecution::kThreads}) {
    Config config = tiny_config();
    config.group_execution = execution;
    run_pes(2, config, [](Runtime& rt) {
      const auto words = rt.heap().allocate<std::uint64_t>(96);
      const auto throws = [=](GroupItem& item) {
        if (item.global_id() == 70) throw std::out_of_range("lane 70");
        shmem_inc(item, &words[item.global_id()], 1 - item.pe());
      };
      try {
        rt.launch(96, throws, "brittle");
        ADD_FAILURE() << "no exception";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::kKernel);
        EXPECT_STREQ(error.what(), "lane 6 of group 2 of kernel 'brittle' has thrown: lane 70");
        EXPECT_THROW(std::rethrow_if_nested(error), std::out_of_range);
      }
      rt.barrier_all();
      for (std::uint64_t i = 0; i < 64; ++i) EXPECT_EQ(words[i], 1u) << i;
      for (std::uint64_t i = 64; i < 96; ++i) EXPECT_LE(words[i], 1u) << i;
      rt.barrier_all();
      rt.launch(96, [=](GroupItem& item) { shmem_put(item, &words[item.global_id()], 5, 1 - item.pe()); });
      rt.barrier_all();
      for (const std::uint64_t word : words) EXPECT_EQ(word, 5u);
    });
  }
}

// Lanes that wait for a slot when a sibling throws have taken its ticket: no later package may wait for them.
TEST(Launch, LeavesTheQueueToOthersWhenALaneOfAGroupThrows) {
  for (const GroupExecution execution : {GroupExecution::kFibers, GroupExecution::kThreads}) {
    Config config = tiny_config();
    config.group_execution = execution;
    config.hang_seconds = 5;
    run_pes(2, config, [](Runtime& rt) {
      const auto words = rt.heap().allocate<std::uint64_t>(32);
      const auto survives = [&](auto... election) {
        for (std::uint64_t round = 0; round < 20; ++round) {
          const auto kernel = [=](GroupItem& item) {
            for (std::uint64_t i = 0; i < 40; ++i) {
              if (item.global_id() == 3 * round && i == round) throw std::runtime_error("cracked");
              shmem_inc(item, &words[(item.global_id() + i) % 32], 1 - item.pe(), decltype(election){}...);
            }
          };
          EXPECT_THROW(rt.launch(96, kernel), Error);
          rt.launch(96,
                    [=](WorkItem item) { shmem_put(item, &words[item.global_id() % 32], 5, 1 - item.pe()); });
          rt.barrier_all();
        }
      };
      survives(PerLane{});
      if (rt.config().group_execution == GroupExecution::kThreads) return;
      survives();
      survives(Predicated{});
      survives(PerWave{});
    });
  }
}

struct NoException {};

// Their groups are counted without coming round to none.
TEST(Launch, OfAsManyLanesAsCanBeNamedRunsThem) {
  run_pes(1, [](Runtime& rt) {
    EXPECT_THROW(rt.launch(~std::uint64_t{0}, [](WorkItem) { throw NoException{}; }), Error);
  });
}

TEST(Launch, NamesTheKernelThatThrowsWhateverItThrows) {
  run_pes(1, [](Runtime& rt) {
    try {
      rt.launch(
          10, [](WorkItem) { throw NoException{}; }, "odd");
      ADD_FAILURE() << "no exception";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "lane 0 of group 0 of kernel 'odd' has thrown what is no std::exception");
      EXPECT_THROW(std::rethrow_if_nested(error), NoException);
    }
    try {
      rt.launch(
          10, [](Lane) { throw Error(Error::Kind::kOutOfMemory, "no more"); }, "greedy");
      ADD_FAILURE() << "no exception";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::kOutOfMemory);
      EXPECT_STREQ(error.what(), "lane 0 of group 0 of kernel 'greedy': no more");
    }
    // No lane throws, but they wait for each other in different places.
    try {
      rt.launch(
          2,
          [](GroupItem& item) {
            if (item.lane() == 0) item.group().sync();
            item.group().position_among(true);
          },
          "split");
      ADD_FAILURE() << "no exception";
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find("kernel 'split' has thrown: "), 0u) << error.what();
    }
  });
}

TEST(APeThatLeaves, TellsItsPeersWhatItsKernelThrew) {
  const auto failed = Pes(2).run_and_catch([](Runtime& rt) {
    if (rt.pe() == 1) {
      rt.launch(
          10,
          [](WorkItem item) {
            if (item.global_id() == 3) throw std::runtime_error("cracked");
          },
          "brittle");
    }
    rt.barrier_all();
  });
  ASSERT_TRUE(failed[0] && failed[1]);
  EXPECT_EQ(failed[1]->message, "lane 3 of group 0 of kernel 'brittle' has thrown: cracked");
  EXPECT_EQ(failed[0]->kind, Error::Kind::kNetwork);
  EXPECT_EQ(failed[0]->message, "PE 1 has left the job by an exception: " + failed[1]->message);
}

TEST(APeThatLeaves, DoesNotBlameAKernelWhoseExceptionItHasSurvived) {
  const auto failed = Pes(2).run_and_catch([](Runtime& rt) {
    if (rt.pe() == 1) {
      EXPECT_THROW(rt.launch(10, [](WorkItem) { throw std::runtime_error("cracked"); }), Error);
      rt.quiet();
      throw std::runtime_error("had enough");
    }
    rt.barrier_all();
  });
  ASSERT_TRUE(failed[0]);
  EXPECT_EQ(failed[0]->message, "PE 1 has left the job by an exception");
}

TEST(LaunchDeathTest, OfALaneIsMisuse) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run_pes(1,
                       [](Runtime& rt) {
                         const auto within = [&](WorkItem) {
                           rt.launch(
                               1, [](WorkItem) {}, "inner");
                         };
                         rt.launch(1000, within, "outer");
                       }),
               "PE 0: launch of 'inner': kernel 'outer' still runs, and neither its lanes nor other threads");
}

#if !defined(ESKER_TEST_SANITIZED)  // which say it in their own words
std::uint64_t recurse(std::uint64_t depth) {
  volatile std::uint64_t words[64] = {depth};
  return depth == 0 ? words[0] : recurse(depth - 1) + words[1];
}

TEST(StackDeathTest, AnOverflowNamesTheKernelAndWhatToDo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto deep = [](Runtime& rt) {
    const auto words = rt.heap().allocate<std::uint64_t>(100);
    rt.launch(
        100,
        [=](GroupItem& item) { words[item.global_id()] = recurse(item.global_id() == 70 ? 1 << 20 : 10); },
        "deep");
  };
  Config config = tiny_config();
  config.group_lanes = 100;
  for (const std::uint32_t threads : {1u, 3u}) {
    config.cpu_threads = threads;
    EXPECT_EXIT(run_pes(1, config, deep), ::testing::KilledBySignal(SIGABRT),
                "esker: PE 0: the stack of a lane of kernel 'deep' has overflowed: .*256 KiB each.*"
                "--group-execution threads");
  }
}

TEST(StackDeathTest, AnotherFaultOfALaneIsItsOwn) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_pes(1,
                      [](Runtime& rt) {
                        rt.launch(10, [pe = rt.pe()](GroupItem& item) {
                          auto* const nowhere = reinterpret_cast<volatile int*>(std::uintptr_t{8} << pe);
                          *nowhere = static_cast<int>(item.lane());
                        });
                      }),
              ::testing::KilledBySignal(SIGSEGV), "");
}
#endif

// A handler throws at the peer while lanes here wait for slots: they must not wait for ever.
TEST(Launch, EndsWithTheErrorWhenTheJobFailsUnderAFullQueue) {
  for (const bool grouped : {false, true}) {
    const auto failed = Pes(2).run_and_catch([=](Runtime& rt) {
      const auto word = rt.heap().allocate<std::uint64_t>(1);
      const auto handler = rt.register_handler<std::uint64_t, std::uint64_t>(
          "brittle", [](HandlerContext&, std::uint64_t& count, const std::uint64_t&) {
            if (++count == 100) throw std::runtime_error("cracked");
          });
      if (rt.pe() == 0) {
        for (;;) {
          if (grouped)
            rt.launch(5000, [=](GroupItem& item) { shmem_am(item, handler, word.data(), 0, 1); });
          else
            rt.launch(5000, [=](WorkItem item) { shmem_am(item, handler, word.data(), 0, 1); });
        }
      }
      rt.barrier_all();
    });
    for (const auto& failure : failed) {
      ASSERT_TRUE(failure);
      EXPECT_EQ(failure->kind, Error::Kind::kHandler) << failure->message;
    }
  }
}

TEST(Handler, ThatThrowsEndsEveryPesNextCallWithItsName) {
  for (const std::uint32_t helpers : {0u, 1u, 3u}) {
    Config config = tiny_config();
    config.apply_helpers = helpers;
    const auto failed = Pes(3, config).run_and_catch([](Runtime& rt) {
      const auto word = rt.heap().allocate<std::uint64_t>(1);
      const auto handler = rt.register_handler<std::uint64_t, std::uint32_t>(
          "brittle",
          [](HandlerContext&, std::uint64_t&, const std::uint32_t&) { throw std::runtime_error("cracked"); });
      rt.barrier_all();
      if (rt.pe() == 0) {
        rt.launch(1, [=](WorkItem item) { shmem_am(item, handler, word.data(), 1, 1); });
      }
      rt.barrier_all();
    });
    for (const auto& failure : failed) {
      ASSERT_TRUE(failure);
      EXPECT_EQ(failure->kind, Error::Kind::kHandler) << failure->message;
      for (const char* part : {"PE 1", "'brittle'", "cracked", "message of PE 0"}) {
        EXPECT_NE(failure->message.find(part), std::string::npos) << failure->message;
      }
    }
  }
}

}  // namespace
}  // namespace esker::testing
