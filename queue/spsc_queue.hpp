// A bounded queue from one thread to one other thread (thesis, section A.2.1).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include <esker/device/atomic.hpp>
#include <esker/device/platform.hpp>

namespace esker {

/// Messages of type T in the order in which they were pushed.
///
/// Contract. One thread pushes and one thread pops; anyone may call was_empty(). T is default
/// constructible, and its move assignment does not throw. A popped slot keeps what the move left in it
/// until it is written again.
///
/// Protocol. `tail` counts pushes and `head` counts pops; both only grow, and message i stands in slot
/// i % capacity. 0 <= tail - head <= capacity, so unlike the thesis's wrapped indices a full queue and
/// an empty one differ, and no slot is lost. Each side keeps the other's counter as it last saw it and
/// looks again only when that copy says full or empty: a line crosses once in many calls, not in each.
///
/// Ordering.
///   [fill]   the write before tail = i + 1  happens before  the read after the consumer saw tail > i
///   [reuse]  the read before head = i + 1   happens before  the write after the producer saw head > i
///
/// Progress. Wait-free: no call waits or repeats.
///
/// AtomicWord is a parameter so that a test can weaken one operation and show that it was needed.
template <class T, template <class> class AtomicWord = SystemAtomic>
class SpscQueue {
  static_assert(std::is_default_constructible_v<T>, "slots exist before they are filled");
  static_assert(std::is_nothrow_move_assignable_v<T>, "a throw between reserve and publish loses a slot");

 public:
  /// Holds at least `capacity` > 0 messages: the next power of two.
  explicit SpscQueue(std::size_t capacity)
      : mask_{std::bit_ceil(capacity) - 1}, slots_{std::make_unique<T[]>(mask_ + 1)} {}

  std::size_t capacity() const { return mask_ + 1; }

  /// Producer. False: the queue is full, and `message` is untouched.
  bool try_push(T&& message) {
    const std::uint64_t tail = producer_.tail.load_relaxed();
    if (tail - producer_.seen_head > mask_) {
      producer_.seen_head = consumer_.head.load_acquire();  // [reuse]
      if (tail - producer_.seen_head > mask_) return false;
    }
    slots_[tail & mask_] = std::move(message);  // reserved: no one else looks at this slot
    producer_.tail.store_release(tail + 1);     // [fill] publish
    return true;
  }
  bool try_push(const T& message) { return try_push(T(message)); }

  /// Consumer. False: the queue is empty, and `message` is untouched.
  bool try_pop(T& message) {
    const std::uint64_t head = consumer_.head.load_relaxed();
    if (head == consumer_.seen_tail) {
      consumer_.seen_tail = producer_.tail.load_acquire();  // [fill] peek
      if (head == consumer_.seen_tail) return false;
    }
    message = std::move(slots_[head & mask_]);
    consumer_.head.store_release(head + 1);  // [reuse] release
    return true;
  }

  /// Racy unless the caller is the consumer and the answer is false.
  bool was_empty() const { return consumer_.head.load_relaxed() == producer_.tail.load_relaxed(); }

 private:
  struct Producer {
    AtomicWord<std::uint64_t> tail;  // written by the producer, read by both
    std::uint64_t seen_head = 0;     // the producer's own
  };
  struct Consumer {
    AtomicWord<std::uint64_t> head;  // written by the consumer, read by both
    std::uint64_t seen_tail = 0;     // the consumer's own
  };
  static_assert(sizeof(Producer) <= kLineBytes && sizeof(Consumer) <= kLineBytes, "a line a side");

  // Neither changes after construction, so both sides share this line at no cost.
  std::uint64_t mask_;
  std::unique_ptr<T[]> slots_;
  alignas(kLineBytes) Producer producer_;
  alignas(kLineBytes) Consumer consumer_;
};

static_assert(sizeof(SpscQueue<int>) == 3 * kLineBytes, "constants, producer and consumer: a line each");

}  // namespace esker
