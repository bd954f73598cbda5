// A planted hang: one frame is lost on purpose, and the job must end by itself and say what is owed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <esker/aggregator/wire.hpp>
#include <esker/runtime/hang_watch.hpp>

#include "pes.hpp"

namespace esker::testing {
namespace {

constexpr std::uint64_t kMessages = 100;

/// PE 0 sends PE 1 one frame of messages, which the medium loses; both then wait.
void lose_a_frame(const std::string& hang_file, bool in_quiet, const std::string& trace = "") {
  Config config = tiny_config();
  config.hang_seconds = 1;
  config.hang_file = hang_file;
  config.trace = trace;
  Pes pes(2, config);
  pes.world().set_tamper([](std::uint32_t from, std::uint32_t, std::vector<std::byte>& frame) {
    wire::FrameHeader header;
    std::memcpy(&header, frame.data(), sizeof header);
    const bool lost = from == 0 && header.kind == wire::Kind::kMessages;
    return lost ? loopback::Fate::kLose : loopback::Fate::kDeliver;
  });
  pes.run([in_quiet](Runtime& rt) {
    const auto word = rt.heap().allocate<std::uint64_t>(1);
    if (rt.pe() == 0) {
      rt.launch(kMessages, [=](WorkItem item) { shmem_inc(item, &word[0], 1); });
      if (in_quiet) rt.quiet();
    }
    rt.barrier_all();
  });
}

/// The death test's process runs a test from its start: both must find the same folder.
class HangDeathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (std::getenv(kVariable) == nullptr) {
      std::string folder = ::testing::TempDir() + "esker-hang-XXXXXX";
      ASSERT_NE(mkdtemp(folder.data()), nullptr);
      setenv(kVariable, folder.c_str(), 1);
      mine_ = true;
    }
    folder_ = std::getenv(kVariable);
  }
  void TearDown() override {
    if (!mine_) return;
    std::filesystem::remove_all(folder_);
    unsetenv(kVariable);
  }
  std::string hang_file() const { return folder_ + "/hang"; }
  std::string trace_file() const { return folder_ + "/trace.json"; }
  nlohmann::json report_of(int pe) const { return load(hang_file() + "." + std::to_string(pe) + ".json"); }
  nlohmann::json trace_of(int pe) const { return load(folder_ + "/trace." + std::to_string(pe) + ".json"); }

 private:
  static nlohmann::json load(const std::string& name) {
    std::ifstream file(name);
    EXPECT_TRUE(file.is_open()) << name << " was not written";
    nlohmann::json report = nlohmann::json::parse(file, nullptr, false);
    EXPECT_FALSE(report.is_discarded()) << name << " does not parse";
    return report;
  }

  static constexpr const char* kVariable = "HANG_TEST_FOLDER";
  std::string folder_;
  bool mine_ = false;
};

// PE 1 knows what has arrived, and learns from PE 0's report what should have.
constexpr const char* kOwed =
    "PE 1: PE 0 reports a hang; stuck stage ship: PE 0 sent 100 messages to PE 1, 0 have arrived, PE 0 owes "
    "100\n";

void check_reports(const nlohmann::json& sender, const nlohmann::json& receiver) {
  EXPECT_EQ(sender.value("pe", 9), 0);
  EXPECT_EQ(sender.value("published", 0u), kMessages);
  EXPECT_EQ(sender.value("aggregated", 0u), kMessages);
  EXPECT_EQ(sender.value("routed", 0u), kMessages);
  EXPECT_EQ(sender.value("stuck_stage", "absent"), "") << "nothing is stuck on this side";
  EXPECT_EQ(sender["peers"][1].value("messages_sent", 0u), kMessages);
  EXPECT_EQ(receiver.value("pe", 9), 1);
  EXPECT_EQ(receiver.value("applied", 1u), 0u);
  EXPECT_EQ(receiver["peers"][0].value("messages_received", 1u), 0u);
  const std::string waits = receiver.value("network_thread", "");
  EXPECT_NE(waits.find("termination detection"), std::string::npos) << waits;
}

TEST_F(HangDeathTest, LostFrameBeforeABarrierEndsTheJobAndNamesStageAndDebtor) {
  EXPECT_EXIT(lose_a_frame(hang_file(), false), ::testing::ExitedWithCode(1), kOwed);
  check_reports(report_of(0), report_of(1));
  const std::string call = report_of(0).value("user_thread", "");
  EXPECT_EQ(call.rfind("in barrier_all for ", 0), 0u) << call;
}

TEST_F(HangDeathTest, LostFrameBeforeAQuietEndsTheJobAndNamesStageAndDebtor) {
  EXPECT_EXIT(lose_a_frame(hang_file(), true), ::testing::ExitedWithCode(1), kOwed);
  check_reports(report_of(0), report_of(1));
  const std::string call = report_of(0).value("user_thread", "");
  EXPECT_EQ(call.rfind("in quiet for ", 0), 0u) << call;
  EXPECT_EQ(report_of(0).value("network_thread", ""), "peers to apply this PE's messages");
}

TEST_F(HangDeathTest, ReportSaysWhoWaitsForWhatAndWhereTheJsonIs) {
  EXPECT_EXIT(
      lose_a_frame(hang_file(), false), ::testing::ExitedWithCode(1),
      "esker: PE 0: (nothing has moved here|PE 1 has seen nothing move) for 1 s .ESKER_HANG_SECONDS; 0 "
      "turns this off. and the job ends\n"
      "esker: PE 0:   user thread: in barrier_all for [0-9.]+ s\n"
      "esker: PE 0:   network thread: waits for termination detection: [^\n]*\n"
      "esker: PE 0:   stuck stage here: none by this PE's counters\n"
      "esker: PE 0:   package queue: 0 of 2 slots taken; 0 node buffers open\n"
      "esker: PE 0:   messages: 100 published by lanes, 0 sent by handlers, 100 repacked, 100 routed, 0 "
      "applied\n"
      "esker: PE 0:   PE 1: 100 messages in 1 buffers to it; 0 in 0 from it, 0 buffers applied\n"
      "esker: PE 0:   the same as JSON: [^\n]*/hang.0.json\n");
}

TEST_F(HangDeathTest, TheTraceEndsWhereTheJobHangs) {
  EXPECT_EXIT(lose_a_frame(hang_file(), false, trace_file()), ::testing::ExitedWithCode(1), kOwed);
  const auto count = [](const nlohmann::json& trace, const char* name) {
    const auto& events = trace["traceEvents"];
    return std::count_if(events.begin(), events.end(),
                         [&](const auto& event) { return event["name"] == name; });
  };
  EXPECT_EQ(count(trace_of(0), "ship"), 1);
  EXPECT_EQ(count(trace_of(1), "receive"), 0);
}

// --- What a PE's own counters say.

StageSnapshot quiet_snapshot() {
  StageSnapshot s;
  s.published = s.aggregated = s.routed = s.applied = 10;
  s.peers = {{0, 0, 0, 0, 0}, {10, 1, 10, 1, 1}};
  return s;
}

TEST(StuckStage, IsNoneWhereEachStageHasPassedOnWhatItGot) {
  EXPECT_EQ(find_stuck_stage(quiet_snapshot()), "");
}

TEST(StuckStage, IsTheFirstOneThatHoldsMessagesBack) {
  StageSnapshot s = quiet_snapshot();
  s.peers[1].buffers_applied = 0;
  s.applied = 3;
  EXPECT_EQ(find_stuck_stage(s), "apply: 1 buffers with 7 messages have arrived and are not applied");
  s.routed = 8;
  EXPECT_EQ(find_stuck_stage(s), "aggregate: 2 messages are in node buffers that are not closed");
  s.aggregated = 6;
  EXPECT_EQ(find_stuck_stage(s), "aggregate: 4 published messages are not repacked");
  s.aggregator_blocked = true;
  EXPECT_EQ(find_stuck_stage(s),
            "aggregate: 4 published messages are not repacked, no node buffer comes back");
  s.network_stuck = true;
  EXPECT_EQ(find_stuck_stage(s), "ship: the network thread is inside one step");
  s.handler = "slow";
  EXPECT_EQ(find_stuck_stage(s), "apply: handler 'slow' has not returned");
}

TEST(HangWatch, IsOffWithoutALimitAndSilentWhileSomethingMovesOrNobodyWaits) {
  HangWatch off(std::chrono::seconds{0});
  HangWatch on(std::chrono::seconds{3600});
  for (std::uint64_t activity = 0; activity < 100; ++activity) {
    EXPECT_FALSE(off.check(0, true));
    EXPECT_FALSE(on.check(activity, true));
    EXPECT_FALSE(on.check(activity, false));
  }
}

}  // namespace
}  // namespace esker::testing
