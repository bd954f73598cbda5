// The device's runtime, whichever was built: memory, streams, peers. Host code only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
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
inline void require(ApiError error, const std::string& what) {
  if (error == ESKER_GPU(Success)) return;
  (void)ESKER_GPU(GetLastError)();  // or a launch that follows would report it
  const auto kind =
      error == ESKER_GPU(ErrorMemoryAllocation) ? Error::Kind::kOutOfMemory : Error::Kind::kDevice;
  throw Error(kind, what + ": " + text_of(error));
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

/// Zeroed memory of the current device.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  /// `what` names it in an error: "the inbox".
  DeviceMemory(std::size_t bytes, const std::string& what, bool zeroed = true) {
    require(ESKER_GPU(Malloc)(&at_, bytes), what + " of " + std::to_string(bytes) + " bytes on the device");
    if (!zeroed) return;
    require(ESKER_GPU(Memset)(at_, 0, bytes), "clearing " + what);
    require(ESKER_GPU(StreamSynchronize)(nullptr), "clearing " + what);  // other streams do not wait for it
  }
  ~DeviceMemory() {
    if (at_ != nullptr) (void)ESKER_GPU(Free)(at_);
  }
  DeviceMemory(DeviceMemory&& other) noexcept : at_{other.at_} { other.at_ = nullptr; }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(at_, other.at_);
    return *this;
  }

  template <class T>
  T* as() const {
    return static_cast<T*>(at_);
  }
  /// It stays allocated to the end of the process.
  void keep() { at_ = nullptr; }
  explicit operator bool() const { return at_ != nullptr; }

 private:
  void* at_ = nullptr;
};

/// Zeroed page-locked host memory that kernels reach at the same address.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  PinnedMemory(std::size_t bytes, const std::string& what, bool zeroed = true) {
    require(allocate_pinned(&at_, bytes), what + " of " + std::to_string(bytes) + " bytes of pinned memory");
    if (zeroed) __builtin_memset(at_, 0, bytes);
  }
  ~PinnedMemory() {
    if (at_ != nullptr) (void)free_pinned(at_);
  }
  PinnedMemory(PinnedMemory&& other) noexcept : at_{other.at_} { other.at_ = nullptr; }
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    std::swap(at_, other.at_);
    return *this;
  }

  template <class T>
  T* as() const {
    return static_cast<T*>(at_);
  }

 private:
  void* at_ = nullptr;
};

}  // namespace esker::gpu
