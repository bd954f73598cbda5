// Which compiled unit device code belongs to: code of one unit cannot call code of another by its address.
#pragma once

#include <cstdint>
#include <esker/device/platform.hpp>

namespace esker::gpu {

#if defined(ESKER_DEVICE_COMPILER)
namespace {
// One in each source file, on purpose: its address is the unit's identity.
__device__ std::uint32_t unit_marker;
}  // namespace
#endif

/// The same in all device code of one source file, different in every other; 0 on the host.
ESKER_HD inline std::uint64_t unit() {
#if defined(ESKER_ON_GPU)
  return reinterpret_cast<std::uint64_t>(&unit_marker);
#else
  return 0;
#endif
}

}  // namespace esker::gpu
