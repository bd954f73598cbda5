// How host threads wait: from pause to yield to sleep, so that two PEs on two cores never burn one.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include <esker/device/cpu/timers.hpp>
#include <esker/device/platform.hpp>
#include <esker/queue/doorbell.hpp>

namespace esker {

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
