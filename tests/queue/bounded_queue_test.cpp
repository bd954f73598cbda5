// The SPSC and the MPMC queue: what one thread sees, the same of both.
#include <gtest/gtest.h>

#include <esker/queue/mpmc_queue.hpp>
#include <esker/queue/spsc_queue.hpp>
#include <memory>
#include <utility>

namespace esker {
namespace {

struct Spsc {
  template <class T>
  using Queue = SpscQueue<T>;
};
struct Mpmc {
  template <class T>
  using Queue = MpmcQueue<T>;
};

template <class Kind>
class BoundedQueue : public testing::Test {
 protected:
  using Ints = typename Kind::template Queue<int>;
  using Pointers = typename Kind::template Queue<std::unique_ptr<int>>;
};
using Kinds = testing::Types<Spsc, Mpmc>;
TYPED_TEST_SUITE(BoundedQueue, Kinds);

TYPED_TEST(BoundedQueue, PopFailsOnAnEmptyQueueAndLeavesTheMessageAlone) {
  typename TestFixture::Ints queue(4);
  int message = 7;
  EXPECT_TRUE(queue.was_empty());
  EXPECT_FALSE(queue.try_pop(message));
  EXPECT_EQ(message, 7);
}

TYPED_TEST(BoundedQueue, PopsInTheOrderOfPushesOverManyRounds) {
  typename TestFixture::Ints queue(4);
  int next = 0;
  for (int i = 0; i < 100; i += 3) {  // three a time: the ring of four wraps at every offset
    for (int k = 0; k < 3; ++k) ASSERT_TRUE(queue.try_push(i + k));
    EXPECT_FALSE(queue.was_empty());
    for (int k = 0; k < 3; ++k) {
      int message = -1;
      ASSERT_TRUE(queue.try_pop(message));
      ASSERT_EQ(message, next++);
    }
    EXPECT_TRUE(queue.was_empty());
  }
}

TYPED_TEST(BoundedQueue, EverySlotIsUsedBeforePushFails) {
  typename TestFixture::Ints queue(4);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(queue.try_push(i));
  EXPECT_FALSE(queue.try_push(4));
  int message = -1;
  ASSERT_TRUE(queue.try_pop(message));
  EXPECT_EQ(message, 0);
  EXPECT_TRUE(queue.try_push(4));
  EXPECT_FALSE(queue.try_push(5));
}

TYPED_TEST(BoundedQueue, CapacityIsTheNextPowerOfTwo) {
  EXPECT_EQ(typename TestFixture::Ints(1).capacity(), 1u);
  EXPECT_EQ(typename TestFixture::Ints(5).capacity(), 8u);
  typename TestFixture::Ints one(1);
  for (int i = 0; i < 3; ++i) {
    int message = -1;
    ASSERT_TRUE(one.try_push(i));
    ASSERT_FALSE(one.try_push(9));
    ASSERT_TRUE(one.try_pop(message));
    ASSERT_EQ(message, i);
  }
}

TYPED_TEST(BoundedQueue, FailedPushKeepsAMoveOnlyMessage) {
  typename TestFixture::Pointers queue(1);
  auto first = std::make_unique<int>(1), second = std::make_unique<int>(2);
  ASSERT_TRUE(queue.try_push(std::move(first)));
  EXPECT_EQ(first, nullptr);
  ASSERT_FALSE(queue.try_push(std::move(second)));
  ASSERT_NE(second, nullptr);
  ASSERT_TRUE(queue.try_pop(first));
  EXPECT_EQ(*first, 1);
  EXPECT_EQ(*second, 2);
}

}  // namespace
}  // namespace esker
