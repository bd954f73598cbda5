// What lanes and handlers throw. For the CPU alone: code on a GPU cannot throw.
#include <stdexcept>

#include <gtest/gtest.h>

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
