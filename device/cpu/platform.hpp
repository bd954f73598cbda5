// The CPU's pass: how a lane gives way, and what is true of host code.
#pragma once

#include <esker/device/platform.hpp>

#include <sched.h>
#include <time.h>

#include <cstdint>

namespace esker::detail {

/// Gives way once.
ESKER_HD inline void give_way() { sched_yield(); }
ESKER_HD inline void give_way_awake() { give_way(); }
ESKER_HD inline std::uint64_t clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}
ESKER_HD inline std::uint64_t clock_ticks() { return clock_ns(); }

/// The lanes of the GPU that was built run on the host's cores.
inline constexpr bool kLanesUseHostCores = false;

/// Host code calls this pass's device code, too.
inline constexpr bool kHostCallsDeviceCode = false;
/// Whether a lane of the GPU calls.
ESKER_HD constexpr bool is_lane() { return false; }

}  // namespace esker::detail
