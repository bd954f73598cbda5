// Errors, names in messages, and the ways out on misuse.
#include <esker/device/error.hpp>

#include <barrier>
#include <csignal>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <esker/device/check.hpp>

namespace esker {
namespace {

TEST(Error, KeepsKindAndMessage) {
  const Error error(Error::Kind::kNetwork, "PE 2 sent a bad header");
  EXPECT_EQ(error.kind(), Error::Kind::kNetwork);
  EXPECT_STREQ(error.what(), "PE 2 sent a bad header");
}

TEST(Error, KindsHaveDistinctNames) {
  std::set<std::string> names;
  for (const auto kind :
       {Error::Kind::kConfiguration, Error::Kind::kOutOfMemory, Error::Kind::kDevice, Error::Kind::kNetwork,
        Error::Kind::kHandler, Error::Kind::kContract, Error::Kind::kKernel}) {
    names.insert(to_string(kind));
  }
  EXPECT_EQ(names.size(), 7u);
}

TEST(WhoAmI, ThreadNameWinsOverProcessName) {
  set_process_name("PE 1");
  EXPECT_EQ(who_am_i(), "PE 1");
  std::string in_thread, after;
  std::thread([&] {
    set_thread_name("PE 7");
    in_thread = who_am_i();
    set_thread_name("");
    after = who_am_i();
  }).join();
  EXPECT_EQ(in_thread, "PE 7");
  EXPECT_EQ(after, "PE 1");
  EXPECT_EQ(who_am_i(), "PE 1");
  set_process_name("");
  EXPECT_EQ(who_am_i(), "");
}

class MisuseDeathTest : public testing::Test {
 protected:
  // A new process for each: a fork of one that has threads may hang.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(MisuseDeathTest, SaysWhoAndWhatAndAborts) {
  const auto die = [] {
    set_process_name("PE 3");
    misuse("heap offset 12 is beyond 8");
  };
  EXPECT_EXIT(die(), testing::KilledBySignal(SIGABRT), "^esker: PE 3: heap offset 12 is beyond 8\n$");
}

TEST_F(MisuseDeathTest, WithoutANameSaysOnlyWhat) {
  EXPECT_EXIT(misuse("no runtime"), testing::KilledBySignal(SIGABRT), "^esker: no runtime\n$");
}

TEST_F(MisuseDeathTest, SeveralThreadsPrintOneMessage) {
  const auto die = [] {
    std::barrier start(8);
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        start.arrive_and_wait();
        misuse("the one message");
      });
    }
  };
  EXPECT_EXIT(die(), testing::KilledBySignal(SIGABRT), "^esker: the one message\n$");
}

TEST_F(MisuseDeathTest, FailedCheckNamesValuesConditionAndPlace) {
  const int offset = 12;
  EXPECT_EXIT(ESKER_CHECK(offset < 8, "put: offset {} of {}", offset, "hits"),
              testing::KilledBySignal(SIGABRT),
              "put: offset 12 of hits \\(requires offset < 8, runtime/error_test.cpp:[0-9]+\\)");
}

TEST(Check, EvaluatesItsConditionOnceAndItsMessageOnlyOnFailure) {
  int conditions = 0, messages = 0;
  ESKER_CHECK(++conditions == 1, "{}", ++messages);
  EXPECT_EQ(conditions, 1);
  EXPECT_EQ(messages, 0);
}

TEST(Check, IsOneStatement) {
  bool reached = false;
  if (reached)
    ESKER_CHECK(false, "not here");
  else
    reached = true;
  EXPECT_TRUE(reached);
}

}  // namespace
}  // namespace esker
