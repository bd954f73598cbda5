// CUDA's runtime as the rest of the library calls it: the same names as device/hip/api.hpp.
#pragma once

#include <cuda_runtime_api.h>

#include <esker/device/cuda/scratchpad.hpp>

#define ESKER_GPU(name) cuda##name
// Starts a kernel: group, lanes and bytes of scratchpad beside what it declares.
#define ESKER_GPU_START(kernel, groups, group_lanes, scratch_bytes, stream, ...) \
  kernel<<<dim3(groups), dim3(group_lanes), scratch_bytes, stream>>>(__VA_ARGS__)
namespace esker::gpu {
inline constexpr const char* kBackend = "cuda";
using Stream = cudaStream_t;
using Event = cudaEvent_t;
using CapturedGraph = cudaGraph_t;
using LaunchableGraph = cudaGraphExec_t;
using ApiError = cudaError_t;
using MemoryHandle = cudaIpcMemHandle_t;
using Properties = cudaDeviceProp;
using DeviceAttribute = cudaDeviceAttr;
using FunctionAttributes = cudaFuncAttributes;
inline constexpr DeviceAttribute kProcessors = cudaDevAttrMultiProcessorCount;
inline constexpr DeviceAttribute kProcessorScratch = cudaDevAttrMaxSharedMemoryPerMultiprocessor;
inline constexpr DeviceAttribute kGroupScratch = cudaDevAttrMaxSharedMemoryPerBlockOptin;
inline constexpr auto kScratchAttribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
/// Whether kernels of several processes run on it at a time: under the multi-process service.
inline bool is_shared_at_a_time(int device) {
  int value = 0;
  constexpr auto kMpsEnabled = static_cast<cudaDeviceAttr>(133);  // named since CUDA 13; older ones refuse it
  const bool known = cudaDeviceGetAttribute(&value, kMpsEnabled, device) == cudaSuccess;
  (void)cudaGetLastError();
  return known && value != 0;
}
/// Whether the driver has assembled a kernel for processors whose scratchpad need not keep the order that it
/// was compiled for.
inline bool is_out_of_order(const FunctionAttributes& kernel) {
  return kernel.ptxVersion == kOrderedScratchpad && kernel.binaryVersion != kOrderedScratchpad;
}
// Where the devices' link has atomics (DeviceGetP2PAttribute).
inline constexpr bool kHeapTakesPeersAtomics = true;
inline constexpr unsigned kPinned = cudaHostAllocMapped | cudaHostAllocPortable;
inline ApiError allocate_pinned(void** at, std::size_t bytes) { return cudaHostAlloc(at, bytes, kPinned); }
inline ApiError free_pinned(void* at) { return cudaFreeHost(at); }
}  // namespace esker::gpu
