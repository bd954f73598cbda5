// Kernels on the GPU that this source is compiled for; nothing where it is compiled for the host alone.
#pragma once

#include <string>

#include <esker/device/platform.hpp>

#if defined(__CUDACC__)
#include <esker/device/cuda/launch.hpp>
#elif defined(__HIPCC__)
#include <esker/device/hip/launch.hpp>
#endif

#if defined(ESKER_DEVICE_COMPILER)

namespace esker::gpu {

/// Starts `body` on `stream`, the device's stream type as void*, and does not wait for it. Returns what went
/// wrong, or "".
template <class Body>
std::string launch_on_device(const LaunchShape& shape, void* stream, const Body& body) {
#if defined(__CUDACC__)
  return cuda_backend::launch(shape, static_cast<cudaStream_t>(stream), body);
#else
  return hip_backend::launch(shape, static_cast<hipStream_t>(stream), body);
#endif
}

/// Where this lane of a kernel that somebody else launched stands, in one dimension.
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
