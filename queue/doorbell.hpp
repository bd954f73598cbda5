// A place where threads sleep until somebody has news, of this process or of another one.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>
#include <type_traits>

namespace esker {

/// Two words of Linux's futexes. It may lie in memory that processes share: zeros are a bell, and a process
/// that dies asleep or ringing holds up nobody.
///
/// Contract. Whoever changes what a sleeper waits for rings afterwards; without a sleeper that is no system
///           call. wait() may return early, and always returns after `at_most`.
/// Ordering. [bell] A change before ring() happens before the check of a sleeper that has counted itself, or
///           ring() sees the sleeper and wakes it: both are read-modify-writes of one word.
///           [bell store] The same of a change that is one store, followed by ring_after_store(): the ringer
///           stores the change, then loads the count; the sleeper adds itself to the count, then loads the
///           change. All four are sequentially consistent, so the sleeper sees the change, or the ringer the
///           sleeper. The ringer only reads a word that stays in its cache while nobody sleeps.
class Doorbell {
 public:
  void ring() {
    if (sleepers_.fetch_add(0, std::memory_order_acq_rel) != 0) wake();  // [bell]
  }
  /// Requires that the change is a sequentially consistent store, before this in the program, and that the
  /// sleeper's check loads it alike.
  void ring_after_store() {
    if (sleepers_.load(std::memory_order_seq_cst) != 0) wake();  // [bell store]
  }

  /// Sleeps until somebody rings or `at_most` has passed, unless `ready()` holds, which is asked once.
  template <class Ready>
  void wait(std::chrono::microseconds at_most, Ready ready) {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);  // [bell] [bell store]
    // Before the check: a ring that comes after it then finds another number than the one slept on.
    const std::uint32_t seen = rings_.load(std::memory_order_acquire);
    if (!ready()) sleep(seen, at_most);
    sleepers_.fetch_sub(1, std::memory_order_acq_rel);
  }

 private:
  void wake() {
    rings_.fetch_add(1, std::memory_order_release);
    syscall(SYS_futex, &rings_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
  void sleep(std::uint32_t seen, std::chrono::microseconds at_most) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_most);
    const std::chrono::nanoseconds rest = at_most - seconds;
    const timespec time{static_cast<time_t>(seconds.count()), static_cast<long>(rest.count())};
    syscall(SYS_futex, &rings_, FUTEX_WAIT, seen, &time, nullptr, 0);
  }

  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<std::uint32_t> rings_{0};  // what sleepers sleep on
};
static_assert(std::is_standard_layout_v<Doorbell> && std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace esker
