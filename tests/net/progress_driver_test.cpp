// When progress kernels run, on a device that the test plays, and what the engine says of them.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <esker/net/gpu/engine/diagnostics.hpp>
#include <esker/net/gpu/engine/progress_driver.hpp>

namespace esker::gpu {
namespace {

/// Results of progress kernels, in order; an empty one after them. A kernel ends at once unless it is held.
class FakeDevice final : public ProgressLauncher {
 public:
  void start(const ProgressRequest& request) override {
    const std::lock_guard lock(mutex_);
    if (fails) throw Error(Error::Kind::kDevice, "refused");
    requests_.push_back(request);
    if (!is_held) end_locked();
  }
  bool is_kernel_running() override { return running; }
  void check_progress_kernel() override {
    if (progress_fails) throw Error(Error::Kind::kDevice, "a progress kernel failed");
  }

  void end() {
    const std::lock_guard lock(mutex_);
    end_locked();
  }
  void will_report(const ProgressSnapshot& snapshot) {
    const std::lock_guard lock(mutex_);
    results_.push_back(snapshot);
  }
  std::vector<ProgressRequest> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

  HostWords words{};
  std::atomic<bool> is_held{false}, running{false}, fails{false}, progress_fails{false};

 private:
  void end_locked() {
    if (!results_.empty()) {
      words.snapshot = results_.front();
      results_.pop_front();
    } else {
      words.snapshot.moved = words.snapshot.handler_backlog = words.snapshot.waiting = 0;
    }
    words.progress_kernel.store_release(requests_.back().number);  // [progress]
  }

  std::mutex mutex_;
  std::vector<ProgressRequest> requests_;
  std::deque<ProgressSnapshot> results_;
};

void wait_until(const std::function<bool()>& holds) {
  while (!holds()) std::this_thread::yield();
}

ProgressSnapshot moved(std::uint64_t messages) {
  ProgressSnapshot snapshot{};
  snapshot.moved = messages;
  return snapshot;
}
ProgressSnapshot left_for(std::initializer_list<std::uint32_t> handlers) {
  ProgressSnapshot snapshot{};
  for (const std::uint32_t handler : handlers) snapshot.waiting |= waiting_bit(handler + 1);
  return snapshot;
}

/// None starts by itself, unless the pause is 0.
class ProgressDriverTest : public ::testing::Test {
 protected:
  explicit ProgressDriverTest(std::chrono::microseconds pause = std::chrono::hours{1})
      : driver{device, device.words, handlers, pause} {}
  /// Asks for a progress kernel, waits for its end and takes the result; asks for no other.
  void run_one() {
    ASSERT_TRUE(driver.step(true, false, 0));
    wait_for_end();
    ASSERT_TRUE(driver.step(false, false, 0));
    ASSERT_FALSE(driver.is_under_way());
  }
  void wait_for_end() {
    wait_until([&] { return device.words.progress_kernel.load_acquire() == driver.started(); });
  }
  void register_handlers(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) handlers.add({{}, i, 0});
  }

  FakeDevice device;
  HandlerRegistry handlers;
  ProgressDriver driver;
};
class ProgressDriverWithoutPauseTest : public ProgressDriverTest {
 protected:
  ProgressDriverWithoutPauseTest() : ProgressDriverTest(std::chrono::microseconds{0}) {}
};

TEST_F(ProgressDriverTest, StartsNothingUnlessItIsWanted) {
  EXPECT_FALSE(driver.step(false, false, 0));
  EXPECT_EQ(driver.started(), 0u);
  run_one();
  EXPECT_EQ(driver.ended(), 1u);
  EXPECT_TRUE(driver.was_quiet());
  EXPECT_FALSE(driver.step(false, false, 0)) << "the last one has found nothing";
  ASSERT_EQ(device.requests().size(), 1u);
  EXPECT_EQ(device.requests()[0].number, 1u);
}

TEST_F(ProgressDriverTest, FramesInFlightCallForOne) {
  EXPECT_TRUE(driver.step(false, false, 1));
  wait_for_end();
}

TEST_F(ProgressDriverTest, RunsOneAtATime) {
  device.is_held = true;
  EXPECT_TRUE(driver.step(true, false, 0));
  wait_until([&] { return device.requests().size() == 1; });
  EXPECT_TRUE(driver.is_under_way());
  EXPECT_FALSE(driver.step(true, false, 0));
  EXPECT_EQ(driver.started(), 1u);
  device.is_held = false;
  device.end();
  EXPECT_TRUE(driver.step(true, false, 0));
  EXPECT_EQ(driver.ended(), 1u);
  EXPECT_EQ(driver.started(), 2u);
  wait_for_end();
}

TEST_F(ProgressDriverWithoutPauseTest, OneThatHasFoundSomethingIsFollowedByAnother) {
  device.will_report(moved(3));
  ASSERT_TRUE(driver.step(true, false, 0));
  wait_for_end();
  EXPECT_TRUE(driver.step(false, false, 0));
  EXPECT_EQ(driver.ended(), 1u);
  EXPECT_EQ(driver.started(), 2u);
  wait_for_end();
  EXPECT_TRUE(driver.step(false, false, 0));
  EXPECT_EQ(driver.started(), 2u) << "the second one has found nothing";
}

TEST_F(ProgressDriverTest, ThePauseHoldsBackOneThatNobodyWaitsFor) {
  device.will_report(moved(3));
  run_one();
  EXPECT_TRUE(driver.is_again_wanted());
  EXPECT_FALSE(driver.step(false, false, 0));
  run_one();
  EXPECT_EQ(driver.started(), 2u) << "somebody has waited for it";
}

TEST_F(ProgressDriverTest, ACompletedRoundCallsForNoMoreUnlessMessagesAreLeft) {
  device.words.calls_handlers.store_relaxed(1);
  device.will_report(moved(3));
  run_one();
  EXPECT_TRUE(driver.is_again_wanted());
  driver.complete_round();
  EXPECT_FALSE(driver.is_again_wanted());
  EXPECT_EQ(device.words.calls_handlers.load_relaxed(), 0u);
  device.will_report(left_for({0}));
  run_one();
  driver.complete_round();
  EXPECT_TRUE(driver.is_again_wanted());
}

TEST_F(ProgressDriverTest, ServesInTurnTheHandlersWhoseMessagesWereLeft) {
  register_handlers(4);
  for (const auto& left : {left_for({1, 3}), left_for({1, 3}), left_for({1}), left_for({}), left_for({0, 2})})
    device.will_report(left);
  for (int i = 0; i < 6; ++i) run_one();
  std::vector<std::size_t> served;
  for (const ProgressRequest& request : device.requests()) served.push_back(request.handler);
  EXPECT_EQ(served, (std::vector<std::size_t>{0, 1, 3, 1, 1, 2}));
}

TEST_F(ProgressDriverTest, HasCompletedOnceALaterOneHasEnded) {
  EXPECT_FALSE(driver.has_completed_since(0, 0));
  run_one();
  EXPECT_TRUE(driver.has_completed_since(0, 0));
  EXPECT_FALSE(driver.has_completed_since(1, 0)) << "it began before";
  EXPECT_FALSE(driver.has_completed_since(0, 1)) << "a frame is on the device";
}

TEST_F(ProgressDriverTest, HasNotCompletedWhileFramesWereInFlightAtItsStart) {
  ASSERT_TRUE(driver.step(false, false, 1));
  wait_for_end();
  ASSERT_TRUE(driver.step(false, false, 0));
  EXPECT_FALSE(driver.has_completed_since(0, 0));
}

TEST_F(ProgressDriverTest, WithHandlersItHasCompletedOnlyIfItHasFoundNothing) {
  device.will_report(moved(1));
  run_one();
  EXPECT_TRUE(driver.has_completed_since(0, 0));
  (void)driver.step(false, true, 0);
  EXPECT_FALSE(driver.has_completed_since(0, 0));
}

TEST_F(ProgressDriverTest, LanesThatStarveCallForADrainOnce) {
  EXPECT_FALSE(driver.take_drain_request());
  device.words.starving.store_relaxed(1);
  EXPECT_TRUE(driver.take_drain_request());
  EXPECT_FALSE(driver.take_drain_request());
}

TEST_F(ProgressDriverTest, PackagesOfHandlersCallForADrainOnce) {
  ProgressSnapshot sent{};
  sent.totals.packages = 5;
  device.will_report(sent);
  run_one();
  EXPECT_TRUE(driver.take_drain_request());
  EXPECT_FALSE(driver.take_drain_request());
  run_one();
  EXPECT_FALSE(driver.take_drain_request()) << "no new ones";
}

TEST_F(ProgressDriverTest, TheEndOfAKernelCallsForADrainOnce) {
  device.running = true;
  driver.starter().note_launch();
  run_one();
  EXPECT_TRUE(device.requests()[0].beside_kernel);
  EXPECT_FALSE(driver.take_drain_request()) << "it runs";
  device.running = false;
  wait_until([&] { return driver.take_drain_request(); });
  EXPECT_FALSE(driver.take_drain_request());
  run_one();
  EXPECT_FALSE(device.requests()[1].beside_kernel);
}

TEST_F(ProgressDriverTest, ALaunchThatFailsIsTheOwnersError) {
  device.fails = true;
  ASSERT_TRUE(driver.step(true, false, 0));
  const auto step_until_it_throws = [&] {
    while (true) (void)driver.step(true, false, 0);
  };
  try {
    step_until_it_throws();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kDevice);
    EXPECT_STREQ(error.what(), "refused");
  }
}

TEST_F(ProgressDriverTest, AProgressKernelThatFailsIsTheOwnersError) {
  device.is_held = true;  // it never ends
  device.progress_fails = true;
  ASSERT_TRUE(driver.step(true, false, 0));
  EXPECT_THROW(while (true)(void) driver.step(true, false, 0), Error);
}

TEST(HandlerRegistry, TheNextInTurnIsTheNextThatWaits) {
  HandlerRegistry handlers;
  EXPECT_EQ(handlers.next_in_turn(~std::uint64_t{0}, 0), 0u) << "there are none";
  for (const std::uint32_t index : {5u, 9u, 6u}) handlers.add({{}, index, 0});
  const auto all = waiting_bit(6) | waiting_bit(7) | waiting_bit(10);
  EXPECT_EQ(handlers.next_in_turn(all, 0), 1u);
  EXPECT_EQ(handlers.next_in_turn(all, 2), 0u);
  EXPECT_EQ(handlers.next_in_turn(waiting_bit(7), 0), 2u) << "by its index, not its place";
  EXPECT_EQ(handlers.next_in_turn(waiting_bit(6), 0), 0u) << "the same again, if no other waits";
  EXPECT_EQ(handlers.next_in_turn(0, 2), 2u);
}

TEST(Diagnostics, SaysWhatWasPublished) {
  Diagnostics diagnostics;
  EXPECT_EQ(diagnostics.traffic().sent, 0u);
  Observation seen{9, 8, 2, false, {}};
  seen.snapshot.totals = {.applied = 30,
                          .sent = 20,
                          .local = 5,
                          .direct = 4,
                          .packages = 3,
                          .bytes = 2,
                          .by_handlers = 1,
                          .asked = 0,
                          .answered = 0,
                          .sent_to = {15},
                          .applied_from = {25}};
  seen.snapshot.handler_backlog = 7;
  diagnostics.publish(seen);
  const DeviceTraffic traffic = diagnostics.traffic();
  EXPECT_EQ(traffic.applied, 30u);
  EXPECT_EQ(traffic.sent, 20u);
  EXPECT_EQ(traffic.local, 5u);
  EXPECT_EQ(traffic.direct, 4u);
  EXPECT_EQ(traffic.packages, 3u);
  EXPECT_EQ(traffic.bytes, 2u);
  EXPECT_EQ(traffic.by_handlers, 1u);
  const std::uint32_t pe_of_link[] = {6};
  EXPECT_EQ(
      diagnostics.describe("relax", pe_of_link),
      "kernel 'relax'; progress kernel 8 of 9 ended, the last found something; 2 frames on the device; by "
      "the last 20 messages sent past the host (5 to itself), 30 applied, 7 of handlers not sent on; PE 6: "
      "15 to it, 25 from it applied");
}

}  // namespace
}  // namespace esker::gpu
