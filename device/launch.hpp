// Kernels on the GPU that this source is compiled for; nothing where it is compiled for the host alone.
#pragma once

#include <cstdint>

#include <esker/device/lane.hpp>
#include <esker/device/platform.hpp>

#if defined(ESKER_DEVICE_COMPILER)

#include <esker/device/gpu/launch.hpp>

namespace esker::gpu {

/// Where a lane stands, in one dimension, of a kernel that the library has not launched.
ESKER_HD inline LaunchShape own_shape() {
#if defined(ESKER_ON_GPU)
  return {std::uint64_t{gridDim.x} * blockDim.x, blockDim.x, 32};
#else
  return {};
#endif
}
ESKER_HD inline std::uint64_t own_group() {
#if defined(ESKER_ON_GPU)
  return blockIdx.x;
#else
  return 0;
#endif
}
ESKER_HD inline std::uint32_t own_lane() {
#if defined(ESKER_ON_GPU)
  return threadIdx.x;
#else
  return 0;
#endif
}

}  // namespace esker::gpu

#endif
