// A planted hang: one frame is lost on purpose, and the job must end by itself and say what is owed.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include <esker/aggregator/wire.hpp>
#include <esker/runtime/hang_inquiry.hpp>
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

/// PE 0 waits for a signal that nobody sends, PE 1 for PE 0.
void wait_for_nothing(const std::string& hang_file) {
  Config config = tiny_config();
  config.hang_seconds = 1;
  config.hang_file = hang_file;
  Pes(2, config).run([](Runtime& rt) {
    const auto word = rt.heap().allocate<std::uint64_t>(4);
    if (rt.pe() == 0) (void)rt.wait_until(&word[2], Comparison::kGreaterEqual, 7);
    rt.barrier_all();
  });
}

TEST_F(HangDeathTest, ASignalThatNeverComesIsNamed) {
  EXPECT_EXIT(wait_for_nothing(hang_file()), ::testing::ExitedWithCode(1),
              "wait_until of the word at heap offset [0-9]+ to be >= 7, which was 0");
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

TEST_F(HangDeathTest, TheReportTakesNamesThatAreNoUtf8) {
  StageSnapshot s = quiet_snapshot();
  s.handler = "caf\xe9";
  write_hang_report(s, "nothing has moved", hang_file());
  EXPECT_EQ(report_of(0)["handler"], "caf\xef\xbf\xbd");
}

// --- What is a hang.

using std::chrono::milliseconds;
using std::chrono::seconds;
constexpr milliseconds kLimit{60'000};

PeAnswer answered(bool waits, milliseconds still) {
  PeAnswer answer;
  answer.status = {waits, still, waits ? "is in barrier_all" : "is outside Esker"};
  return answer;
}
PeAnswer silent(milliseconds time, bool may_be_silent) {
  PeAnswer answer;
  answer.silent = time;
  answer.may_be_silent = may_be_silent;
  answer.why_silent = may_be_silent ? "state T (stopped)" : "it is inside one step";
  return answer;
}

TEST(HangOutlook, IsTheEndOnlyWhereEveryPeWaitsAndNothingMoves) {
  const std::vector<PeAnswer> all_wait{answered(true, kLimit), answered(true, 2 * kLimit)};
  EXPECT_EQ(judge(all_wait, kLimit), Outlook::kCannotEnd);
  const std::vector<PeAnswer> one_moved{answered(true, kLimit), answered(true, kLimit - milliseconds{1})};
  EXPECT_EQ(judge(one_moved, kLimit), Outlook::kMoves);
  const std::vector<PeAnswer> one_computes{answered(true, kLimit), answered(false, 2 * kLimit)};
  EXPECT_EQ(judge(one_computes, kLimit), Outlook::kMayEnd);
}

TEST(HangOutlook, LeavesASilentPeTheLimitToAnswerAndOneThatMayBeSilentAllTheTime) {
  const auto with = [](const PeAnswer& other) {
    return std::vector<PeAnswer>{answered(true, kLimit), other};
  };
  EXPECT_EQ(judge(with(silent(milliseconds{2000}, false)), kLimit), Outlook::kMayEnd);
  EXPECT_EQ(judge(with(silent(kLimit, false)), kLimit), Outlook::kCannotEnd);
  EXPECT_EQ(judge(with(silent(100 * kLimit, true)), kLimit), Outlook::kMayEnd);
}

TEST(HangOutlook, IsToldInAWarningThatNamesWhoCanGoOnAndWhoIsSilent) {
  std::vector<PeAnswer> answers{answered(true, kLimit), answered(false, kLimit), silent(kLimit, true),
                                answered(true, kLimit)};
  answers[2].process = 4711;
  EXPECT_EQ(
      describe_wait(answers, kLimit, Outlook::kMayEnd, 0),
      "esker: warning: PE 0: nothing has moved for 60 s (ESKER_HANG_SECONDS; 0 turns this off); the job "
      "goes on\n"
      "esker: warning: PE 0:   PE 1 is outside Esker\n"
      "esker: warning: PE 0:   PE 2 (process 4711) does not answer: state T (stopped)\n"
      "esker: warning: PE 0:   PE 0 is in barrier_all\n"
      "esker: warning: PE 0:   and 1 more PE waits\n");
}

TEST(PeStatus, TravelsInAWord) {
  for (const bool waits : {false, true}) {
    const PeStatus status = PeStatus::from(PeStatus{waits, kLimit, ""}.word(), "is here");
    EXPECT_EQ(status.waits, waits);
    EXPECT_EQ(status.still, kLimit);
    EXPECT_EQ(status.doing, "is here");
  }
}

/// PE 1 of three, where nothing moves from `start` on.
class HangInquiryTest : public ::testing::Test {
 protected:
  using Time = HangInquiry::Clock::time_point;
  PeStatus at(Time now) const {
    return {true, std::chrono::duration_cast<milliseconds>(now - start_), "is in barrier_all"};
  }
  const Time start_{seconds{1'000'000}};
  HangInquiry inquiry_{1, 3, kLimit};
};

TEST_F(HangInquiryTest, AsksAtTheLimitAndAfterAWarningAtTwiceTheTime) {
  Time now = start_ + kLimit;
  EXPECT_FALSE(inquiry_.start_if_due(at(now - milliseconds{1}), now));
  EXPECT_FALSE(inquiry_.start_if_due({false, kLimit, ""}, now)) << "this PE does not wait";
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(inquiry_.start_if_due(at(now), now));
    EXPECT_FALSE(inquiry_.start_if_due(at(now), now)) << "one at a time";
    EXPECT_EQ(inquiry_.to_ask(now), (std::vector<std::uint32_t>{0, 2}));
    inquiry_.heard_answer(0, at(now));
    EXPECT_FALSE(inquiry_.is_complete(now));
    inquiry_.heard_answer(2, {false, kLimit, ""});
    ASSERT_TRUE(inquiry_.is_complete(now));
    const auto answers = inquiry_.take_answers(at(now), now);
    EXPECT_EQ(judge(answers, kLimit), Outlook::kMayEnd);
    inquiry_.schedule(Outlook::kMayEnd, answers, now);
    const Time next = now + (now - start_);
    EXPECT_FALSE(inquiry_.start_if_due(at(next - milliseconds{1}), next - milliseconds{1}));
    now = next;
  }
}

TEST_F(HangInquiryTest, AsksASilentPeOnceAndCountsItsSilenceFromThere) {
  const Time now = start_ + kLimit;
  ASSERT_TRUE(inquiry_.start_if_due(at(now), now));
  (void)inquiry_.to_ask(now);
  inquiry_.heard_answer(0, at(now));
  ASSERT_FALSE(inquiry_.is_complete(now + seconds{1}));
  ASSERT_TRUE(inquiry_.is_complete(now + seconds{2}));
  auto answers = inquiry_.take_answers(at(now), now + seconds{2});
  EXPECT_EQ(answers[2].silent, seconds{2});
  EXPECT_EQ(judge(answers, kLimit), Outlook::kMayEnd);
  inquiry_.schedule(Outlook::kMayEnd, answers, now);
  const Time later = now + kLimit;
  ASSERT_TRUE(inquiry_.start_if_due(at(later), later));
  EXPECT_EQ(inquiry_.to_ask(later), std::vector<std::uint32_t>{0});
  inquiry_.heard_answer(0, at(later));
  ASSERT_TRUE(inquiry_.is_complete(later + seconds{2}));
  answers = inquiry_.take_answers(at(later), later + seconds{2});
  EXPECT_EQ(judge(answers, kLimit), Outlook::kCannotEnd);
}

TEST_F(HangInquiryTest, LeavesItToALowerPeAndAsksAgainWhenTheLastThatMovedMayHaveStoodStill) {
  Time now = start_ + kLimit;
  inquiry_.heard_question(2, now);
  inquiry_.heard_question(0, now - milliseconds{1});
  EXPECT_TRUE(inquiry_.start_if_due({true, milliseconds{0}, ""}, now) == false) << "something has moved";
  ASSERT_TRUE(inquiry_.start_if_due(at(now), now)) << "and what was left to PE 0 is forgotten";
  (void)inquiry_.to_ask(now);
  inquiry_.heard_answer(0, {true, kLimit - seconds{7}, ""});
  inquiry_.heard_answer(2, {true, kLimit, ""});
  const auto answers = inquiry_.take_answers(at(now), now);
  inquiry_.schedule(judge(answers, kLimit), answers, now);
  EXPECT_FALSE(inquiry_.start_if_due(at(now + seconds{6}), now + seconds{6}));
  inquiry_.heard_question(0, now + seconds{6});
  EXPECT_FALSE(inquiry_.start_if_due(at(now + seconds{7}), now + seconds{7}));
  EXPECT_TRUE(inquiry_.start_if_due(at(now + seconds{66}), now + seconds{66}));
}

TEST(HangInquiry, IsOffWithoutALimit) {
  HangInquiry off(0, 2, milliseconds{0});
  EXPECT_FALSE(off.start_if_due({true, seconds{1'000'000}, ""}, HangInquiry::Clock::now()));
}

TEST(HangWatch, CountsFromTheLastMovementAndNotWhileNobodyLooked) {
  HangWatch watch(seconds{60});
  HangWatch::Clock::time_point now{seconds{1'000'000}};
  EXPECT_EQ(watch.still(5, now), milliseconds{0});
  now += seconds{1};
  EXPECT_EQ(watch.still(5, now), seconds{1});
  now += seconds{2};
  EXPECT_EQ(watch.still(5, now), seconds{3});
  EXPECT_EQ(watch.still(6, now), milliseconds{0});
  now += seconds{100};  // the process was stopped
  EXPECT_EQ(watch.still(6, now), milliseconds{0});
}

TEST(HangWatch, DoesNotTakeAnAbsenceForAHangWhateverTheLimit) {
  HangWatch watch(seconds{1});
  HangWatch::Clock::time_point now{seconds{1'000'000}};
  for (int i = 0; i < 4; ++i, now += milliseconds{200}) EXPECT_EQ(watch.still(5, now), i * milliseconds{200});
  now += milliseconds{1600};  // the process was stopped
  EXPECT_EQ(watch.still(5, now), milliseconds{0});
}

// --- Jobs that take their time.

/// The program's own work for so long. The time is what is tested, not what anybody waits for; asleep, since
/// other tests want the core.
void compute(milliseconds time) { std::this_thread::sleep_for(time); }

/// Runs `body` on two PEs that look for hangs after a second; what they wrote.
std::string run_patiently(const Pes::Body& body) {
  Config config = tiny_config();
  config.hang_seconds = 1;
  ::testing::internal::CaptureStderr();
  run_pes(2, config, body);
  return ::testing::internal::GetCapturedStderr();
}

TEST(PatientJob, GoesOnWhileAPeComputesOutsideEskerAndSaysSo) {
  const std::string text = run_patiently([](Runtime& rt) {
    rt.barrier_all();
    if (rt.pe() == 1) compute(seconds{3});
    rt.barrier_all();
  });
  // In whole seconds, and a busy machine is late.
  EXPECT_TRUE(std::regex_search(text, std::regex("esker: warning: PE 0: nothing has moved for [12] s")))
      << text;
  EXPECT_NE(text.find("PE 1 is outside Esker, in the program's own code"), std::string::npos) << text;
  EXPECT_NE(text.find("PE 0 is in barrier_all for "), std::string::npos) << text;
}

TEST(PatientJob, GoesOnWhileAKernelRunsAndNamesIt) {
  const std::string text = run_patiently([](Runtime& rt) {
    if (rt.pe() == 1)
      rt.launch(
          1, [](WorkItem) { compute(seconds{3}); }, "long one");
    rt.barrier_all();
  });
  EXPECT_NE(text.find("PE 1 runs kernel 'long one' for "), std::string::npos) << text;
}

TEST(PatientJob, IsSilentWhileSomethingMovesElsewhere) {
  const std::string text = run_patiently([](Runtime& rt) {
    const auto word = rt.heap().allocate<std::uint64_t>(1);
    for (int i = 0; rt.pe() == 1 && i < 8; ++i) {
      compute(milliseconds{200});
      rt.launch(1, [=](WorkItem item) { shmem_inc(item, &word[0], 1); });
    }
    rt.barrier_all();
  });
  EXPECT_EQ(text, "");
}

}  // namespace
}  // namespace esker::testing
