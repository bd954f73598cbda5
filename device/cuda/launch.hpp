// Kernels on CUDA. For sources that nvcc compiles.
#pragma once

#include <esker/device/gpu/launch.hpp>
#include <string>

namespace esker::cuda_backend {

inline std::string last_error() {
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? "" : cudaGetErrorString(error);
}

/// Starts `body` on `stream` and does not wait for it. Returns what went wrong, or "".
template <class Body>
std::string launch(const LaunchShape& shape, cudaStream_t stream, const Body& body) {
  return gpu::launch(shape, stream, body, last_error);
}

/// Groups of this kernel that the current device holds at a time.
template <class Body>
std::uint64_t resident_groups(std::uint32_t group_lanes) {
  int device = 0;
  int processors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  return gpu::resident_groups<Body>(
      group_lanes, static_cast<std::uint32_t>(processors), [](auto kernel, std::uint32_t lanes) {
        int blocks = 0;
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, static_cast<int>(lanes), 0);
        return static_cast<std::uint32_t>(blocks);
      });
}

}  // namespace esker::cuda_backend
