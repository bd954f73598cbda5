// The CPU's pass: how a lane gives way, and what is true of host code.
#pragma once

#include <esker/device/platform.hpp>

#include <sched.h>

namespace esker::detail {

/// Gives way once.
ESKER_HD inline void give_way() {
  sched_yield();
}

/// The lanes of the GPU that was built run on the host's cores.
inline constexpr bool kLanesUseHostCores = false;

/// Host code calls this pass's device code, too.
inline constexpr bool kHostCallsDeviceCode = false;
/// Whether a lane of the GPU calls.
ESKER_HD constexpr bool is_lane() { return false; }

}  // namespace esker::detail
