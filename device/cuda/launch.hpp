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

}  // namespace esker::cuda_backend
