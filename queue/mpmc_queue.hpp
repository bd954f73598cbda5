// A bounded queue from any threads to any threads, one message a slot (thesis, section A.2.2).
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

/// Messages of type T. Those of one producer arrive in their order.
///
/// Contract. Any thread pushes, any thread pops. T is default constructible, and its move assignment
/// does not throw. A popped slot keeps what the move left in it until it is written again.
///
/// Protocol. That of PackageQueue: ticket t belongs to slot t % capacity in round r = t / capacity, and
/// the slot's turn word is
///     2r      empty: the producer that holds ticket t may fill it
///     2r + 1  full:  the consumer that holds ticket t may read it
/// It only grows, and only the holder of ticket t moves it on, so at most one agent is in a slot at any
/// time. Unlike a group's leader, a caller here takes a ticket only when its turn has come, so that
/// "full" and "empty" are answers.
///
/// Ordering.
///   [fill]   the write before turn = 2r + 1  happens before  the read of the consumer that saw it
///   [reuse]  the read before turn = 2r + 2   happens before  the write of the producer that saw it
///
/// Progress. No call waits. A call repeats only when another call has taken the ticket that it wanted.
/// A thread that stalls between ticket and turn holds up the messages behind it, and no caller: they
/// are told "empty", and "full" once the ring has come round.
///
/// AtomicWord is a parameter so that a test can weaken one operation and show that it was needed.
template <class T, template <class> class AtomicWord = SystemAtomic>
class MpmcQueue {
  static_assert(std::is_default_constructible_v<T>, "slots exist before they are filled");
  static_assert(std::is_nothrow_move_assignable_v<T>, "a throw between ticket and turn stops the queue");

 public:
  /// Holds at least `capacity` > 0 messages: the next power of two.
  explicit MpmcQueue(std::size_t capacity)
      : mask_{std::bit_ceil(capacity) - 1},
        round_shift_{std::countr_one(mask_)},
        slots_{std::make_unique<Slot[]>(mask_ + 1)} {}

  std::size_t capacity() const { return mask_ + 1; }

  /// False: the queue is full, and `message` is untouched.
  bool try_push(T&& message) {
    std::uint64_t ticket = tail_.load_relaxed();
    while (true) {
      Slot& slot = slots_[ticket & mask_];
      const std::uint64_t empty = 2 * round(ticket);
      const std::uint64_t turn = slot.turn.load_acquire();  // [reuse]
      if (turn < empty) return false;
      if (turn > empty) {
        ticket = tail_.load_relaxed();                                  // another producer has filled it
      } else if (tail_.compare_exchange_relaxed(ticket, ticket + 1)) {  // reserve
        slot.message = std::move(message);
        slot.turn.store_release(empty + 1);  // [fill] publish
        return true;
      }
    }
  }
  bool try_push(const T& message) { return try_push(T(message)); }

  /// False: the queue is empty, or the oldest message is still being written; `message` is untouched.
  bool try_pop(T& message) {
    std::uint64_t ticket = head_.load_relaxed();
    while (true) {
      Slot& slot = slots_[ticket & mask_];
      const std::uint64_t full = 2 * round(ticket) + 1;
      const std::uint64_t turn = slot.turn.load_acquire();  // [fill]
      if (turn < full) return false;
      if (turn > full) {
        ticket = head_.load_relaxed();                                  // another consumer has emptied it
      } else if (head_.compare_exchange_relaxed(ticket, ticket + 1)) {  // peek
        message = std::move(slot.message);
        slot.turn.store_release(full + 1);  // [reuse] release
        return true;
      }
    }
  }

  /// Racy.
  bool was_empty() const { return head_.load_relaxed() >= tail_.load_relaxed(); }

 private:
  struct alignas(kLineBytes) Slot {
    AtomicWord<std::uint64_t> turn;  // see Protocol
    T message{};                     // belongs to whoever `turn` says
  };
  static_assert(sizeof(Slot) % kLineBytes == 0, "neighbouring slots share no line");

  std::uint64_t round(std::uint64_t ticket) const { return ticket >> round_shift_; }

  // None changes after construction, so all sides share this line at no cost.
  std::uint64_t mask_;
  int round_shift_;
  std::unique_ptr<Slot[]> slots_;
  alignas(kLineBytes) AtomicWord<std::uint64_t> tail_;  // tickets taken by producers
  alignas(kLineBytes) AtomicWord<std::uint64_t> head_;  // tickets taken by consumers
};

static_assert(sizeof(MpmcQueue<int>) == 3 * kLineBytes, "constants, producers and consumers: a line each");

}  // namespace esker
