// HIP's device pass: how a lane gives way, and what is true of device code. The same names as
// device/cpu/platform.hpp.
#pragma once

#include <cstdint>

#include <esker/device/platform.hpp>

#if defined(ESKER_ON_HIP)

namespace esker::detail {

ESKER_HD inline void give_way() { __builtin_amdgcn_s_sleep(2); }
ESKER_HD inline void give_way_awake() { give_way(); }  // of all lanes of a wave anyway
/// The constant clock of 100 MHz.
ESKER_HD inline std::uint64_t clock_ns() { return __builtin_amdgcn_s_memrealtime() * 10; }
ESKER_HD inline std::uint64_t clock_ticks() { return __builtin_readcyclecounter(); }

inline constexpr bool kLanesUseHostCores = false;
inline constexpr bool kHostCallsDeviceCode = false;
ESKER_HD constexpr bool is_lane() { return true; }

}  // namespace esker::detail

#endif
