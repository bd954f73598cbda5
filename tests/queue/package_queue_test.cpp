// The package queue: layout of a package, and behaviour of one thread.
#include <esker/queue/package_queue.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <utility>

#include <esker/queue/package_memory.hpp>

namespace esker {
namespace {

constexpr std::uint32_t kCommand = 3;

TEST(PackageQueue, PeekFailsUntilPublish) {
  PackageMemory memory(2, kLineBytes);
  PackageQueue queue = memory.queue();
  std::uint64_t taken = 0;
  EXPECT_FALSE(queue.try_peek(taken));
  const std::uint64_t ticket = queue.reserve();
  EXPECT_TRUE(queue.was_empty(ticket));
  EXPECT_FALSE(queue.try_peek(taken));  // reserved is not published
  queue.publish(ticket, kCommand, 1, 16);
  EXPECT_FALSE(queue.was_empty(ticket));
  ASSERT_TRUE(queue.try_peek(taken));
  EXPECT_EQ(taken, ticket);
  EXPECT_FALSE(queue.try_peek(taken));  // one consumer a package
}

TEST(PackageQueue, HeaderTellsWhatTheProducerPublished) {
  PackageMemory memory(2, 1024);
  PackageQueue queue = memory.queue();
  queue.publish(queue.reserve(), kCommand, 2, 5);
  std::uint64_t taken = 0;
  ASSERT_TRUE(queue.try_peek(taken));
  EXPECT_EQ(queue.header(taken).command, kCommand);
  EXPECT_EQ(queue.header(taken).words, 2u);
  EXPECT_EQ(queue.header(taken).count, 5u);
}

TEST(PackageQueue, SlotIsReusableOnlyAfterRelease) {
  PackageMemory memory(1, kLineBytes);
  PackageQueue queue = memory.queue();
  queue.publish(queue.reserve(), kCommand, 1, 1);
  const std::uint64_t next = queue.reserve();
  EXPECT_FALSE(queue.was_empty(next));  // full
  std::uint64_t taken = 0;
  ASSERT_TRUE(queue.try_peek(taken));
  EXPECT_FALSE(queue.was_empty(next));  // being read
  queue.release(taken);
  EXPECT_TRUE(queue.was_empty(next));
}

TEST(PackageQueue, TryReserveTakesATicketOnlyWhileItsSlotIsEmpty) {
  PackageMemory memory(2, kLineBytes);
  PackageQueue queue = memory.queue();
  std::uint64_t ticket = 0;
  EXPECT_EQ(queue.reserve(), 0u);
  ASSERT_TRUE(queue.try_reserve(ticket));
  EXPECT_EQ(ticket, 1u);
  EXPECT_FALSE(queue.try_reserve(ticket));  // the slot of 2 is that of 0, which is to be filled
  queue.publish(0, kCommand, 1, 1);
  EXPECT_FALSE(queue.try_reserve(ticket));
  EXPECT_EQ(queue.was_occupied(), 2u);  // what fails takes nothing
  std::uint64_t taken = 0;
  ASSERT_TRUE(queue.try_peek(taken));
  queue.release(taken);
  ASSERT_TRUE(queue.try_reserve(ticket));
  EXPECT_EQ(ticket, 2u);
}

TEST(PackageQueue, ReserveOfSeveralGivesConsecutiveTicketsInDifferentSlots) {
  PackageMemory memory(4, kLineBytes);
  PackageQueue queue = memory.queue();
  EXPECT_EQ(queue.reserve(3), 0u);
  EXPECT_EQ(queue.reserve(2), 3u);
  EXPECT_EQ(queue.reserve(), 5u);
  EXPECT_EQ(queue.was_occupied(), 6u);
  for (std::uint64_t t = 0; t < 4; ++t) EXPECT_TRUE(queue.was_empty(t));
  EXPECT_FALSE(queue.was_empty(4));  // slot 0, next round
  for (std::uint64_t t = 1; t < 4; ++t) EXPECT_NE(queue.row(t, 1, 0), queue.row(t - 1, 1, 0));
  EXPECT_EQ(queue.row(4, 1, 0), queue.row(0, 1, 0));
}

TEST(PackageQueue, ConsumersTakeTheTicketsOfOneReserveInOrderWhateverTheOrderOfPublishing) {
  PackageMemory memory(4, kLineBytes);
  PackageQueue queue = memory.queue();
  const std::uint64_t first = queue.reserve(3);
  std::uint64_t taken = 0;
  queue.publish(first + 2, kCommand, 1, 1);
  queue.publish(first + 1, kCommand, 1, 1);
  EXPECT_FALSE(queue.try_peek(taken));  // the oldest is missing
  queue.publish(first, kCommand, 1, 1);
  for (std::uint64_t t = first; t < first + 3; ++t) {
    ASSERT_TRUE(queue.try_peek(taken));
    EXPECT_EQ(taken, t);
  }
  EXPECT_EQ(queue.was_occupied(), 0u);
}

TEST(PackageQueue, AdjacentLanesWriteAdjacentWordsOfARow) {
  constexpr std::uint32_t kPayload = 1024, kWords = 4;
  PackageMemory memory(2, kPayload);
  PackageQueue queue = memory.queue();
  const std::uint64_t ticket = queue.reserve();
  EXPECT_EQ(queue.columns(1), 128u);
  EXPECT_EQ(queue.columns(3), 42u);
  ASSERT_EQ(queue.columns(kWords), 32u);
  const std::uint64_t* payload = queue.row(ticket, kWords, 0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(payload) % kLineBytes, 0u);
  for (std::uint32_t r = 0; r < kWords; ++r) {
    EXPECT_EQ(queue.row(ticket, kWords, r), payload + r * 32);
  }
}

TEST(PackageQueue, EveryWordOfEveryFullPackageIsItsOwn) {
  constexpr std::uint32_t kSlots = 4, kPayload = 256;
  for (std::uint32_t words = 1; words <= 8; ++words) {
    PackageMemory memory(kSlots, kPayload);
    PackageQueue queue = memory.queue();
    const std::uint32_t columns = queue.columns(words);
    queue.reserve(kSlots);
    const auto value = [&](std::uint64_t t, std::uint32_t r, std::uint32_t c) {
      return 1 + (t * words + r) * columns + c;
    };
    for (std::uint64_t t = 0; t < kSlots; ++t) {
      for (std::uint32_t r = 0; r < words; ++r) {
        for (std::uint32_t c = 0; c < columns; ++c) queue.row(t, words, r)[c] = value(t, r, c);
      }
      queue.publish(t, kCommand, words, columns);
    }
    for (std::uint64_t t = 0; t < kSlots; ++t) {  // after all are written: none has overwritten another
      ASSERT_EQ(queue.header(t).count, columns);
      for (std::uint32_t r = 0; r < words; ++r) {
        for (std::uint32_t c = 0; c < columns; ++c) ASSERT_EQ(queue.row(t, words, r)[c], value(t, r, c));
      }
    }
  }
}

// A word that runs `before_load` once, ahead of an acquire load: what another agent did meanwhile.
std::function<void()> before_load;
template <class T>
class InterruptibleAtomic : public SystemAtomic<T> {
 public:
  T load_acquire() const {
    if (auto act = std::exchange(before_load, nullptr)) act();
    return SystemAtomic<T>::load_acquire();
  }
};

TEST(PackageQueue, PeekFindsThePackageBehindOneThatAnotherConsumerTookMeanwhile) {
  BasicPackageMemory<InterruptibleAtomic> memory(2, kLineBytes);
  auto queue = memory.queue();
  const std::uint64_t first = queue.reserve(2);
  queue.publish(first, kCommand, 1, 1);
  queue.publish(first + 1, kCommand, 1, 1);
  before_load = [queue, first]() mutable {
    std::uint64_t other = 9;
    ASSERT_TRUE(queue.try_peek(other));
    EXPECT_EQ(other, first);
    queue.release(other);
  };
  std::uint64_t taken = 9;
  ASSERT_TRUE(queue.try_peek(taken));
  EXPECT_EQ(taken, first + 1);
}

}  // namespace
}  // namespace esker
