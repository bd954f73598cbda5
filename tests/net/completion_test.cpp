// Completion by itself: stages that a test scripts, PEs over loopback, all on one thread.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <esker/aggregator/aggregator.hpp>
#include <esker/net/completion.hpp>
#include <esker/net/lane_stage.hpp>
#include <esker/net/loopback/transport.hpp>
#include <esker/queue/package_memory.hpp>

namespace esker::testing {
namespace {

using Kind = NetworkRequest::Kind;

/// Says what the test has set, and counts what it is told.
struct FakeStage final : CompletionStage {
  explicit FakeStage(const char* text = "a fake") : name{text} {}

  void begin(const NetworkRequest&) override { ++begins; }
  void flush() override { ++flushes; }
  bool flushed() override { return is_flushed; }
  bool drained() override { return is_drained; }
  void start_over() override {
    ++starts_over;
    if (next_round) next_round();
  }
  const char* waits_for() const override { return name; }
  std::uint64_t applied() const override {
    ++counted;
    if (reads != nullptr) *reads += 'a';
    return messages_applied;
  }
  std::uint64_t sent() const override {
    if (reads != nullptr) *reads += 's';
    return messages_sent;
  }
  bool may_send() const override { return may; }
  bool is_final() const override { return final; }
  void ask_peers() override { ++asks; }
  bool have_peers_applied() override { return applied_by_peers; }
  void heard_may_send() override { ++heard; }
  void end(bool all_applied) override { (all_applied ? completed : ended)++; }

  const char* name;
  bool is_flushed = true, is_drained = true, applied_by_peers = true, may = false, final = true;
  std::uint64_t messages_applied = 0, messages_sent = 0;
  std::function<void()> next_round;
  int begins = 0, flushes = 0, starts_over = 0, asks = 0, heard = 0, completed = 0, ended = 0;
  mutable int counted = 0;       // rounds of a barrier
  std::string* reads = nullptr;  // 'a' for each applied(), 's' for each sent()
};

/// One PE: two stages, and the request that the test posts.
struct Pe {
  Pe(loopback::World& world, std::uint32_t pe)
      : transport{world.connect(pe, {1024, 4})}, completion{*transport, failure, bell, nullptr} {
    completion.set_stages({&first, &second});
  }
  void post(Kind kind, std::uint32_t collective = 1) {
    request.kind = kind;
    request.call = "a call";
    request.mine.collective = collective;
    request.mine.sequence = 1;
    request.done.store(false);
    completion.post(&request);
  }
  /// Steps far more often than any call needs whose stages have nothing to wait for.
  void step(int steps = 20) {
    for (int i = 0; i < steps; ++i) completion.step();
  }
  bool is_done() const { return request.done.load(); }

  std::unique_ptr<Transport> transport;
  Failure failure;
  Doorbell bell;
  FakeStage first{"the first"}, second{"the second"};
  Completion completion;
  NetworkRequest request{};
};

class Alone : public ::testing::Test {
 protected:
  loopback::World world_{1};
  Pe pe_{world_, 0};
};
using Quiet = Alone;
using BarrierRounds = Alone;

TEST_F(Quiet, WaitsForEachStageInTheOrderOfTheMessages) {
  FakeStage &first = pe_.first, &second = pe_.second;
  first.is_flushed = second.is_flushed = second.applied_by_peers = false;
  pe_.post(Kind::kQuiet);
  pe_.step();
  EXPECT_EQ(pe_.completion.was_waiting_for(), "the first");
  EXPECT_EQ(second.flushes, 0) << "flushed while messages may still come from the first";
  first.is_flushed = true;
  pe_.step();
  EXPECT_EQ(pe_.completion.was_waiting_for(), "the second");
  EXPECT_EQ(second.flushes, 1);
  EXPECT_EQ(first.asks + second.asks, 0);
  second.is_flushed = true;
  pe_.step();
  EXPECT_EQ(pe_.completion.was_waiting_for(), "peers to apply this PE's messages");
  EXPECT_EQ(first.asks, 1);
  EXPECT_EQ(second.asks, 1);
  EXPECT_FALSE(pe_.is_done());
  second.applied_by_peers = true;
  pe_.step();
  EXPECT_TRUE(pe_.is_done());
  EXPECT_EQ(pe_.completion.was_waiting_for(), "");
  EXPECT_EQ(first.flushes, 0) << "whoever asked has flushed the first stage";
  EXPECT_EQ(first.ended, 1);
  EXPECT_EQ(first.completed, 0) << "a quiet says nothing of other PEs' messages";
  EXPECT_EQ(first.counted, 0) << "a quiet gathers nothing";
}

TEST_F(Quiet, DoesNotAskForADrainedStage) {
  pe_.second.is_drained = false;
  pe_.post(Kind::kQuiet);
  pe_.step();
  EXPECT_TRUE(pe_.is_done());
}

TEST_F(BarrierRounds, OneIsEnoughWhereNothingMaySend) {
  pe_.first.messages_sent = pe_.second.messages_applied = 7;
  pe_.post(Kind::kBarrier);
  pe_.step();
  EXPECT_TRUE(pe_.is_done());
  EXPECT_EQ(pe_.first.counted, 1);
  EXPECT_EQ(pe_.first.completed, 1);
  EXPECT_EQ(pe_.first.heard, 0);
  EXPECT_EQ(pe_.request.all.at(0).values[NetworkRequest::kSent], 7u);
}

TEST_F(BarrierRounds, GoOnUntilTheSumsAreEqual) {
  pe_.first.messages_sent = 7;
  pe_.second.messages_applied = 6;
  pe_.post(Kind::kBarrier);
  pe_.step(40);
  EXPECT_FALSE(pe_.is_done());
  EXPECT_GT(pe_.first.counted, 1);
  pe_.second.messages_applied = 7;
  while (!pe_.is_done()) pe_.step();
  EXPECT_EQ(pe_.first.completed, 1);
}

TEST_F(BarrierRounds, WaitForEachStageToDrain) {
  for (FakeStage* const stage : {&pe_.first, &pe_.second}) {
    stage->is_drained = false;
    pe_.post(Kind::kBarrier);
    pe_.step();
    EXPECT_FALSE(pe_.is_done()) << stage->name;
    EXPECT_EQ(pe_.completion.was_waiting_for(), "this PE's messages to leave and to be applied");
    stage->is_drained = true;
    pe_.step();
    EXPECT_TRUE(pe_.is_done()) << stage->name;
  }
}

// Sums that are equal by accident: other ones follow, so some message was on its way.
TEST_F(BarrierRounds, AreNotEndedBySumsThatAreEqualOnceWhereHandlersMaySend) {
  FakeStage& stage = pe_.first;
  stage.may = true;
  stage.messages_sent = stage.messages_applied = 5;
  stage.next_round = [&] {
    if (stage.counted == 1) stage.messages_sent = stage.messages_applied = 6;
  };
  pe_.post(Kind::kBarrier);
  while (!pe_.is_done()) pe_.step(1);
  EXPECT_EQ(stage.counted, 3) << "5 and 5; 6 and 6; 6 and 6 again";
  EXPECT_EQ(stage.heard, 3);
  EXPECT_EQ(stage.completed, 1);
}

TEST_F(BarrierRounds, NeedTwoEqualOnesRunningWhereHandlersMaySend) {
  FakeStage& stage = pe_.first;
  stage.may = true;
  stage.messages_sent = stage.messages_applied = 5;
  stage.next_round = [&] {
    stage.messages_applied = stage.counted == 1 ? 4 : 5;  // equal, not equal, equal, equal
  };
  pe_.post(Kind::kBarrier);
  while (!pe_.is_done()) pe_.step(1);
  EXPECT_EQ(stage.counted, 4);
}

// The rendezvous beside GPUs: equal sums that are not final are none.
TEST_F(BarrierRounds, DoNotEndBeforeAllCountsAreFinal) {
  FakeStage& stage = pe_.second;
  stage.final = false;
  stage.next_round = [&] { stage.final = stage.starts_over == 2; };
  pe_.post(Kind::kBarrier);
  while (!pe_.is_done()) pe_.step(1);
  EXPECT_EQ(stage.counted, 3);
}

TEST_F(BarrierRounds, StartOverWithAStageThatIsNoLongerFlushed) {
  FakeStage &first = pe_.first, &second = pe_.second;
  second.is_drained = false;
  pe_.post(Kind::kBarrier);
  pe_.step();
  EXPECT_EQ(second.flushes, 1);
  first.is_flushed = false;  // something has come back to it
  pe_.step();
  EXPECT_EQ(first.starts_over, 0) << "while the others drain there is nothing to repeat";
  second.is_drained = true;
  pe_.step();
  EXPECT_EQ(first.starts_over, 1);
  EXPECT_EQ(second.starts_over, 1);
  EXPECT_EQ(second.flushes, 1) << "not before the first is flushed";
  EXPECT_EQ(first.counted, 0) << "not counted before";
  first.is_flushed = true;
  pe_.step();
  EXPECT_EQ(second.flushes, 2);
  EXPECT_TRUE(pe_.is_done());
}

TEST_F(BarrierRounds, ReadAppliedOfAllStagesBeforeSentOfAny) {
  std::string reads;
  pe_.first.reads = pe_.second.reads = &reads;
  pe_.post(Kind::kBarrier);
  pe_.step();
  EXPECT_EQ(reads, "aass");
}

TEST_F(BarrierRounds, AreFurtherApartAfterTheFirstFew) {
  FakeStage& stage = pe_.first;
  stage.messages_sent = 1;
  pe_.post(Kind::kBarrier);
  pe_.step(40);
  EXPECT_GE(stage.counted, static_cast<int>(Completion::kPromptRounds));
  const int before = stage.counted;
  const auto start = std::chrono::steady_clock::now();
  while (stage.counted < before + 3) pe_.step(1);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 2 * Completion::kBetweenRounds);
}

TEST_F(BarrierRounds, LeaveTheValuesOfTheCallerAlone) {
  pe_.request.mine.values[NetworkRequest::kBarrierValues] = 42;
  pe_.post(Kind::kBarrier);
  pe_.step();
  ASSERT_TRUE(pe_.is_done());
  EXPECT_EQ(pe_.request.all.at(0).values[NetworkRequest::kBarrierValues], 42u);
}

TEST_F(Alone, AFailureDropsTheRequestAndItsStages) {
  pe_.first.is_flushed = false;
  pe_.post(Kind::kQuiet);
  pe_.step();
  EXPECT_TRUE(pe_.completion.is_active());
  pe_.failure.set(Error::Kind::kNetwork, "for the test");
  pe_.first.is_flushed = true;
  pe_.step();
  EXPECT_FALSE(pe_.completion.is_active());
  EXPECT_FALSE(pe_.is_done());
  EXPECT_EQ(pe_.first.ended, 0);
}

TEST_F(Alone, AGatherAsksNoStage) {
  pe_.first.is_flushed = pe_.first.is_drained = false;
  pe_.request.mine.values = {1, 2, 3, 4, 5, 6};
  pe_.post(Kind::kGather);
  pe_.step();
  ASSERT_TRUE(pe_.is_done());
  EXPECT_EQ(pe_.request.all.at(0).values, (std::array<std::uint64_t, 6>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(pe_.first.begins + pe_.first.ended, 0);
}

class Pair : public ::testing::Test {
 protected:
  void step(int steps = 40) {
    for (int i = 0; i < steps; ++i) {
      a_.completion.step();
      b_.completion.step();
    }
  }
  loopback::World world_{2};
  Pe a_{world_, 0};
  Pe b_{world_, 1};
};

TEST_F(Pair, ABarrierAddsUpWhatAllPesHaveSentAndApplied) {
  a_.first.messages_sent = 3;
  b_.second.messages_applied = 2;
  a_.post(Kind::kBarrier);
  step();
  EXPECT_FALSE(a_.is_done()) << "the other PE has not called";
  b_.post(Kind::kBarrier);
  step();
  EXPECT_FALSE(a_.is_done() || b_.is_done());
  b_.second.messages_applied = 3;
  while (!a_.is_done() || !b_.is_done()) step(1);
  EXPECT_EQ(a_.first.completed + b_.first.completed, 2);
}

TEST_F(Pair, HandlersOfOnePeMakeAllLookTwice) {
  b_.first.may = true;
  a_.post(Kind::kBarrier);
  b_.post(Kind::kBarrier);
  step();
  ASSERT_TRUE(a_.is_done() && b_.is_done());
  EXPECT_EQ(a_.first.counted, 2);
  EXPECT_EQ(a_.first.heard, 2);
}

TEST_F(Pair, PesInDifferentCallsAllReturnAndCanSeeIt) {
  a_.post(Kind::kBarrier, 1);
  b_.post(Kind::kGather, 2);
  step();
  ASSERT_TRUE(a_.is_done() && b_.is_done());
  EXPECT_EQ(a_.request.all.at(1).collective, 2u);
  EXPECT_EQ(b_.request.all.at(0).collective, 1u);
  EXPECT_EQ(a_.first.completed, 0) << "nothing is known of what is applied";
  EXPECT_EQ(a_.first.ended, 1);
}

// PEs that meet in different calls have not applied what handlers may answer: the next barrier looks twice.
TEST(LaneStage, RemembersCallsOfHandlersUntilABarrierHasAppliedAll) {
  struct NoSink final : BufferSink {
    void submit(Buffer*) override {}
  } sink;
  PackageMemory memory(2, 1024);
  using std::chrono::seconds;
  Aggregators aggregators({1, 0, 1, 1024, 2, seconds{1}, seconds{1}}, memory.queue(), sink);
  const std::atomic<std::uint64_t> published{0};
  std::atomic<bool> call_handlers{true};
  std::atomic<std::uint32_t> waiting{0};
  LaneStage stage(aggregators, published, call_handlers, waiting);
  NetworkRequest barrier{};
  barrier.kind = Kind::kBarrier;
  for (const bool all_applied : {false, true}) {
    stage.begin(barrier);
    EXPECT_TRUE(stage.may_send());
    stage.end(all_applied);
  }
  stage.begin(barrier);
  EXPECT_FALSE(stage.may_send());
}

}  // namespace
}  // namespace esker::testing
