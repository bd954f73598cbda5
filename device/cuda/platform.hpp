// CUDA's device pass: how a lane gives way, and what is true of device code. The same names as
// device/cpu/platform.hpp.
#pragma once

#include <cstdint>

#include <esker/device/platform.hpp>

#if defined(ESKER_ON_CUDA)

namespace esker::detail {

ESKER_HD inline void give_way() { __nanosleep(100); }
ESKER_HD inline void give_way_awake() {}  // the loads that follow pace it
ESKER_HD inline std::uint64_t clock_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
ESKER_HD inline std::uint64_t clock_ticks() { return static_cast<std::uint64_t>(clock64()); }

inline constexpr bool kLanesUseHostCores = false;
inline constexpr bool kHostCallsDeviceCode = false;
ESKER_HD constexpr bool is_lane() { return true; }

}  // namespace esker::detail

#endif
