// Kernels on HIP. For sources that hipcc compiles.
#pragma once

#include <esker/device/gpu/launch.hpp>
#include <string>

namespace esker::hip_backend {

inline std::string last_error() {
  const hipError_t error = hipGetLastError();
  return error == hipSuccess ? "" : hipGetErrorString(error);
}

/// Starts `body` on `stream` and does not wait for it. Returns what went wrong, or "".
template <class Body>
std::string launch(const LaunchShape& shape, hipStream_t stream, const Body& body) {
  return gpu::launch(shape, stream, body, last_error);
}

}  // namespace esker::hip_backend
