// HIP's runtime as the rest of the library calls it: the same names as device/cuda/api.hpp.
#pragma once

#if !defined(__HIPCC__) && !defined(__HIP_PLATFORM_AMD__)
#define __HIP_PLATFORM_AMD__ 1
#endif
#include <hip/hip_runtime_api.h>

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
}  // namespace esker::gpu
