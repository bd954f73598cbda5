// How host threads wait: from pause to yield to sleep, so that two PEs on two cores never burn one.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include <esker/device/cpu/timers.hpp>
#include <esker/device/platform.hpp>

namespace esker {

/// A place to sleep until somebody has news.
///
/// Contract. Whoever changes what a sleeper waits for calls ring() afterwards. Ringing costs one
///           read-modify-write while nobody sleeps.
/// Ordering. [bell] The change before ring() happens before the check of a sleeper that has counted itself,
///           or ring() sees the sleeper and wakes it: both are read-modify-writes of one word.
class Doorbell {
 public:
  void ring() {
    if (sleepers_.fetch_add(0, std::memory_order_acq_rel) == 0) return;  // [bell]
    const std::lock_guard lock(mutex_);
    ++rings_;
    rung_.notify_all();
  }

  /// Sleeps until ring(), `at_most` has passed or `ready()` holds.
  template <class Ready>
  void wait(std::chrono::microseconds at_most, Ready ready) {
    sleepers_.fetch_add(1, std::memory_order_acq_rel);  // [bell]
    if (!ready()) {
      std::unique_lock lock(mutex_);
      const std::uint64_t seen = rings_;
      if (!ready()) rung_.wait_for(lock, at_most, [&] { return rings_ != seen; });
    }
    sleepers_.fetch_sub(1, std::memory_order_acq_rel);
  }

 private:
  std::atomic<std::uint32_t> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable rung_;
  std::uint64_t rings_ = 0;  // guarded by mutex_
};

/// The escalation: a few pauses, a few yields, then naps on a doorbell that double up to a bound.
class Backoff {
 public:
  static constexpr std::uint32_t kYields = 64;  // some 20 us
  /// For threads that wait for a GPU: its next word comes sooner than a nap ends
  /// (docs/design/progress-kernels-and-occupancy.md).
  static constexpr std::uint32_t kYieldsBesideADevice = detail::kLanesUseHostCores ? 0 : 1024;

  explicit Backoff(std::chrono::microseconds longest_nap, std::uint32_t yields = kYields)
      : longest_{longest_nap}, last_round_{kPauses + yields} {}

  /// Something moved: start again from the top.
  void reset() {
    idle_rounds_ = 0;
    nap_ = kFirstNap;
  }

  /// Gives the core away for a moment. `ready` is checked once more before sleeping, for `at_most` if that is
  /// less than the nap that is due.
  template <class Ready>
  void wait(Doorbell& bell, Ready ready,
            std::chrono::microseconds at_most = std::chrono::microseconds::max()) {
    if (idle_rounds_ < kPauses) {
      ++idle_rounds_;
      pause();
    } else if (idle_rounds_ < last_round_) {
      ++idle_rounds_;
      sched_yield();
    } else {
      bell.wait(std::min(nap_, at_most), ready);
      nap_ = std::min(2 * nap_, longest_);
    }
  }

  bool napping() const { return idle_rounds_ == last_round_; }

  static void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    sched_yield();
#endif
  }

 private:
  static constexpr std::uint32_t kPauses = 8;
  static constexpr std::chrono::microseconds kFirstNap{50};

  std::chrono::microseconds longest_;
  std::uint32_t last_round_;
  std::chrono::microseconds nap_ = kFirstNap;
  std::uint32_t idle_rounds_ = 0;
};

}  // namespace esker
