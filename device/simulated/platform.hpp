// A simulated GPU's build, both passes: how a lane gives way, and what is true of lanes that are fibers of
// the host. The same names as device/cpu/platform.hpp.
#pragma once

#include <time.h>

#include <cstdint>

#include <esker/device/platform.hpp>
#include <esker/device/simulated/lanes.hpp>

#if defined(ESKER_ON_SIMULATED)
#include <esker/device/simulated/language.hpp>
#endif

namespace esker::detail {

inline void give_way() { simulated::yield(); }
inline void give_way_awake() { give_way(); }
inline std::uint64_t clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}
inline std::uint64_t clock_ticks() { return clock_ns(); }

inline constexpr bool kLanesUseHostCores = true;

ESKER_PASS_BEGIN
#if defined(ESKER_ON_SIMULATED)
inline constexpr bool kHostCallsDeviceCode = true;  // there is one pass for both
#else
inline constexpr bool kHostCallsDeviceCode = false;
#endif
inline bool is_lane() { return simulated::here.is_lane; }
ESKER_PASS_END

}  // namespace esker::detail
