// The device's runtime, whichever was built: memory, streams, peers. Host code only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <esker/device/error.hpp>
#include <esker/device/gpu/occupancy.hpp>

#if defined(ESKER_DEVICE_HIP) || defined(__HIPCC__)
#include <esker/device/hip/api.hpp>
#elif defined(ESKER_DEVICE_SIMULATED)
#include <esker/device/simulated/api.hpp>
#else
#include <esker/device/cuda/api.hpp>
#endif

namespace esker::gpu {

inline std::string text_of(ApiError error) {
  return std::string(ESKER_GPU(GetErrorName)(error)) + ": " + ESKER_GPU(GetErrorString)(error);
}

/// Throws Error{kDevice}, or Error{kOutOfMemory}, unless the call succeeded. `what` is "call: values".
inline void require(ApiError error, std::string_view what) {
  if (error == ESKER_GPU(Success)) return;
  (void)ESKER_GPU(GetLastError)();  // or a launch that follows would report it
  const auto kind =
      error == ESKER_GPU(ErrorMemoryAllocation) ? Error::Kind::kOutOfMemory : Error::Kind::kDevice;
  throw Error(kind, std::string(what) + ": " + text_of(error));
}

inline std::uint32_t device_count() {
  int count = 0;
  if (ESKER_GPU(GetDeviceCount)(&count) != ESKER_GPU(Success)) {
    (void)ESKER_GPU(GetLastError)();
    return 0;
  }
  return static_cast<std::uint32_t>(count);
}

/// Of a device; 0 if it does not say.
inline std::uint32_t attribute_of(int device, DeviceAttribute which) {
  int value = 0;
  (void)ESKER_GPU(DeviceGetAttribute)(&value, which, device);
  return static_cast<std::uint32_t>(value);
}
/// What a broker of this device divides.
inline Occupancy::Limits limits_of(int device) {
  return {attribute_of(device, kProcessors), attribute_of(device, kProcessorScratch),
          attribute_of(device, kGroupScratch)};
}

}  // namespace esker::gpu
