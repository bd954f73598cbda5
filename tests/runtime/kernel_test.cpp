// Kernels that send, over loopback: elections, divergence, lane threads, exceptions.
#include "kernels.hpp"

#include <stdexcept>

#include "pes.hpp"

namespace esker::testing {
namespace {

struct Execution {
  std::uint32_t n_pes, cpu_threads;
  GroupExecution group;
  std::uint64_t lanes;
};

class Kernel : public ::testing::TestWithParam<Execution> {
 protected:
  void run(const Pes::Body& body) {
    Config config = tiny_config();
    config.cpu_threads = GetParam().cpu_threads;
    config.group_execution = GetParam().group;
    run_pes(GetParam().n_pes, config, body);
  }
};

TEST_P(Kernel, EveryElectionSendsEachMessageOnce) {
  run([](Runtime& rt) { check_elections(rt, GetParam().lanes); });
}

TEST_P(Kernel, SendsFromNestedBranchesLoopsAndLanesThatReturnEarly) {
  run([](Runtime& rt) { check_divergence(rt, GetParam().lanes); });
}

TEST_P(Kernel, AlternatesBetweenCommands) {
  run([](Runtime& rt) { check_interleaved_commands(rt, GetParam().lanes); });
}

INSTANTIATE_TEST_SUITE_P(Executions, Kernel,
                         ::testing::Values(Execution{1, 1, GroupExecution::kFibers, 500},
                                           Execution{2, 2, GroupExecution::kFibers, 500},
                                           Execution{3, 3, GroupExecution::kFibers, 500},
                                           // A last group that is not full; a thread a lane is slow to start.
                                           Execution{2, 1, GroupExecution::kThreads, 75}));

TEST(Launch, OfNoLanesSendsNothing) {
  run_pes(2, [](Runtime& rt) {
    rt.launch(0, [](WorkItem) { FAIL(); });
    rt.launch(0, [](GroupItem&) { FAIL(); });
    rt.barrier_all();
    EXPECT_EQ(rt.statistics().messages_published, 0u);
  });
}

TEST(Launch, RunsEachLaneOnceInEveryShape) {
  Config config = tiny_config();
  config.cpu_threads = 3;
  run_pes(1, config, [](Runtime& rt) {
    for (const LaunchShape shape :
         {LaunchShape{1, 1, 1}, LaunchShape{1000, 7, 3}, LaunchShape{999, 1024, 64}}) {
      const auto ran = rt.heap().allocate<std::uint64_t>(shape.lanes);
      rt.launch_shape(shape, [=](WorkItem item) { ++ran[item.global_id()]; });
      rt.launch_shape(shape, [=](GroupItem& item) { ++ran[item.global_id()]; });
      for (const std::uint64_t count : ran) ASSERT_EQ(count, 2u);
    }
  });
}

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
      EXPECT_STREQ(error.what(), "lane 700");
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
      EXPECT_THROW(rt.launch(96,
                             [=](GroupItem& item) {
                               if (item.global_id() == 70) throw std::runtime_error("lane 70");
                               shmem_inc(item, &words[item.global_id()], 1 - item.pe());
                             }),
                   std::runtime_error);
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

}  // namespace
}  // namespace esker::testing
