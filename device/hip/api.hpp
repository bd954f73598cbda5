// HIP's runtime as the rest of the library calls it: the same names as device/cuda/api.hpp.
#pragma once

#if !defined(__HIPCC__) && !defined(__HIP_PLATFORM_AMD__)
#define __HIP_PLATFORM_AMD__ 1
#endif
#include <hip/hip_runtime_api.h>

#include <memory>
#include <optional>

#include <esker/device/device_backend.hpp>

#define ESKER_GPU(name) hip##name
// Starts a kernel: group, lanes and bytes of scratchpad beside what it declares.
#define ESKER_GPU_START(kernel, groups, group_lanes, scratch_bytes, stream, ...) \
  kernel<<<dim3(groups), dim3(group_lanes), scratch_bytes, stream>>>(__VA_ARGS__)
namespace esker::gpu {
inline constexpr const char* kBackend = "hip";
using Stream = hipStream_t;
using Event = hipEvent_t;
using CapturedGraph = hipGraph_t;
using LaunchableGraph = hipGraphExec_t;
using ApiError = hipError_t;
using MemoryHandle = hipIpcMemHandle_t;
using Properties = hipDeviceProp_t;
using DeviceAttribute = hipDeviceAttribute_t;
using FunctionAttributes = hipFuncAttributes;
inline constexpr DeviceAttribute kProcessors = hipDeviceAttributeMultiprocessorCount;
inline constexpr DeviceAttribute kProcessorScratch = hipDeviceAttributeMaxSharedMemoryPerMultiprocessor;
inline constexpr DeviceAttribute kGroupScratch = hipDeviceAttributeMaxSharedMemoryPerBlock;
inline constexpr auto kScratchAttribute = hipFuncAttributeMaxDynamicSharedMemorySize;
inline bool is_out_of_order(const FunctionAttributes&) { return false; }  // scratch_fence() is one
inline bool is_shared_at_a_time(int) { return true; }  // processes' queues are served side by side
// On memory of hipMalloc() they need not be one to its own device's.
inline constexpr bool kHeapTakesPeersAtomics = false;
inline constexpr unsigned kPinned = hipHostMallocMapped | hipHostMallocPortable | hipHostMallocCoherent;
inline ApiError allocate_pinned(void** at, std::size_t bytes) { return hipHostMalloc(at, bytes, kPinned); }
inline ApiError free_pinned(void* at) { return hipHostFree(at); }
/// A graph may have host functions.
inline constexpr bool kGraphsTakeFunctions = false;
/// ROCm 5.2 declares hipLaunchHostFunc() and has none. Callbacks do the same, but in no graph.
inline ApiError launch_host_function(Stream stream, void (*function)(void*), void* data) {
  struct Callback {
    void (*function)(void*);
    void* data;
  };
  auto callback = std::make_unique<Callback>(Callback{function, data});
  const ApiError error = hipStreamAddCallback(
      stream,
      [](hipStream_t, hipError_t, void* given) {
        const std::unique_ptr<Callback> owned(static_cast<Callback*>(given));
        owned->function(owned->data);
      },
      callback.get(), 0);
  if (error == hipSuccess) (void)callback.release();
  return error;
}
inline std::optional<ApiError> copy_together(void* const*, const void* const*, const std::size_t*,
                                             std::size_t, int, Stream) {
  return std::nullopt;
}
inline MemoryRange range_of(const void* at) {
  hipPointerAttribute_t known{};
  if (hipPointerGetAttributes(&known, at) != hipSuccess) {
    (void)hipGetLastError();
    return {};
  }
  MemoryRange range;
  range.device = static_cast<std::uint32_t>(known.device);
  if (known.isManaged != 0) {
    range.place = MemoryPlace::kManaged;
  } else if (known.memoryType == hipMemoryTypeHost) {
    range.place = known.devicePointer == at ? MemoryPlace::kPinned : MemoryPlace::kPageable;
  } else {
    range.place = MemoryPlace::kDevice;
    hipDeviceptr_t begin{};
    std::size_t bytes = 0;
    if (hipMemGetAddressRange(&begin, &bytes, const_cast<void*>(at)) == hipSuccess) {
      range.begin = static_cast<const std::byte*>(begin);
      range.bytes = bytes;
    } else {
      (void)hipGetLastError();
    }
  }
  return range;
}
}  // namespace esker::gpu
