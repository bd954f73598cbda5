// Frames on their way through Dispatch, numbers in a Sequence, buffers in a SubmitQueue.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <esker/net/dispatch.hpp>
#include <esker/net/grown_memory.hpp>
#include <esker/net/sequence.hpp>
#include <esker/net/submit_queue.hpp>

namespace esker::testing {
namespace {

/// Takes as many as it has space for, and finishes when the test says so.
struct SlowApplier final : FrameApplier {
  bool try_submit(ApplyJob& job) override {
    if (throws) throw std::runtime_error("for the test");
    if (taken.size() == space) return false;
    job.left.store(1, std::memory_order_relaxed);
    taken.push_back(&job);
    return true;
  }
  void finish(std::size_t i) { taken[i]->left.store(0, std::memory_order_release); }

  std::size_t space = 2;
  bool throws = false;
  std::vector<ApplyJob*> taken;
};

Arrival numbered(std::uint64_t sequence) {
  Arrival arrival;
  arrival.header.sequence = sequence;
  return arrival;
}

TEST(Dispatch, FramesComeBackInOrderThoughTheyFinishOtherwise) {
  SlowApplier applier;
  std::atomic<std::uint64_t> heap_bytes{64};
  Dispatch dispatch(applier, heap_bytes);
  for (std::uint64_t n = 1; n <= 3; ++n) dispatch.apply(numbered(n));
  ASSERT_EQ(applier.taken.size(), 2u);
  EXPECT_EQ(applier.taken[0]->heap_bytes, 64u);
  applier.finish(1);
  EXPECT_FALSE(dispatch.take_applied());
  applier.finish(0);
  EXPECT_EQ(dispatch.take_applied()->header.sequence, 1u);
  EXPECT_EQ(dispatch.take_applied()->header.sequence, 2u);
  EXPECT_FALSE(dispatch.take_applied());
  EXPECT_FALSE(dispatch.step()) << "there is no space for the third";
  applier.space = 3;
  EXPECT_TRUE(dispatch.step());
  EXPECT_FALSE(dispatch.is_empty());
  applier.finish(2);
  EXPECT_EQ(dispatch.take_applied()->header.sequence, 3u);
  EXPECT_TRUE(dispatch.is_empty());
}

TEST(Dispatch, AFrameThatTheApplierThrowsForIsNeitherAppliedNorTriedAgain) {
  SlowApplier applier;
  const std::atomic<std::uint64_t> heap_bytes{64};
  Dispatch dispatch(applier, heap_bytes);
  applier.throws = true;
  EXPECT_THROW(dispatch.apply(numbered(1)), std::runtime_error);
  EXPECT_FALSE(dispatch.step());
  EXPECT_FALSE(dispatch.take_applied());
  EXPECT_FALSE(dispatch.is_empty());
}

TEST(Sequence, CountsUpToTheFirstNumberThatIsMissing) {
  Sequence sequence;
  for (const std::uint64_t n : {2u, 4u, 3u}) {
    sequence.add(n);
    EXPECT_EQ(sequence.prefix(), 0u);
  }
  sequence.add(1);
  EXPECT_EQ(sequence.prefix(), 4u);
  sequence.add(6);
  EXPECT_EQ(sequence.prefix(), 4u);
  sequence.add(5);
  EXPECT_EQ(sequence.prefix(), 6u);
}

TEST(SubmitQueue, KeepsWhatTheQueueCannotHoldAndWakesOnceForMany) {
  constexpr int kBuffers = 20;
  SubmitQueue queue(4);
  std::vector<Buffer> buffers;
  buffers.reserve(kBuffers);
  int wakes = 0;
  for (int i = 0; i < kBuffers; ++i) wakes += queue.push(&buffers.emplace_back(64u, nullptr)) ? 1 : 0;
  EXPECT_EQ(wakes, 1);
  EXPECT_FALSE(queue.was_empty());
  std::vector<Buffer*> got;
  EXPECT_TRUE(queue.take([&](Buffer* buffer) { got.push_back(buffer); }));
  ASSERT_EQ(got.size(), buffers.size());
  for (int i = 0; i < kBuffers; ++i)
    EXPECT_EQ(got[static_cast<std::size_t>(i)], &buffers[static_cast<std::size_t>(i)]);
  EXPECT_TRUE(queue.was_empty());
  EXPECT_FALSE(queue.take([](Buffer*) {}));
}

TEST(GrownMemory, IsCongestedBeyondAQuarterOfItsLimitAndRemembersItsPeak) {
  GrownMemory memory(400);
  EXPECT_EQ(memory.add(100), 100u);
  EXPECT_FALSE(memory.was_congested());
  EXPECT_EQ(memory.add(50), 150u);
  EXPECT_TRUE(memory.was_congested());
  memory.remove(120);
  EXPECT_FALSE(memory.was_congested());
  EXPECT_EQ(memory.peak_bytes(), 150u);
}

}  // namespace
}  // namespace esker::testing
