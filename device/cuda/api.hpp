// CUDA's runtime as the rest of the library calls it: the same names as device/hip/api.hpp.
#pragma once

#include <cuda_runtime_api.h>

#include <optional>

#include <esker/device/cuda/scratchpad.hpp>
#include <esker/device/device_backend.hpp>

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
/// A graph may have host functions.
inline constexpr bool kGraphsTakeFunctions = true;
inline ApiError launch_host_function(Stream stream, void (*function)(void*), void* data) {
  return cudaLaunchHostFunc(stream, function, data);
}
/// Copies in any order, by one call. Nothing: there is none.
inline std::optional<ApiError> copy_together(void* const* to, const void* const* from,
                                             const std::size_t* bytes, std::size_t n, int device,
                                             Stream stream) {
#if CUDART_VERSION >= 13000
  cudaMemcpyAttributes how{};
  how.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  how.srcLocHint = how.dstLocHint = {cudaMemLocationTypeDevice, device};
  std::size_t first = 0;
  return cudaMemcpyBatchAsync(to, from, bytes, n, &how, &first, 1, stream);
#else
  (void)to, (void)from, (void)bytes, (void)n, (void)device, (void)stream;
  return std::nullopt;
#endif
}
/// The driver's function of this name, found at run time: nothing links the driver. Null: there is none.
inline void* driver_function(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result{};
  constexpr unsigned kSince = 12000;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &function, kSince, cudaEnableDefault, &result);
  (void)cudaGetLastError();
  return error == cudaSuccess && result == cudaDriverEntryPointSuccess ? function : nullptr;
}
inline MemoryRange range_of(const void* at) {
  // CUpointer_attribute: MEMORY_TYPE, DEVICE_POINTER, IS_MANAGED, DEVICE_ORDINAL, RANGE_START_ADDR,
  // RANGE_SIZE.
  enum { kType, kDevicePointer, kIsManaged, kDevice, kBegin, kBytes, kAll };
  int which[kAll] = {2, 3, 8, 9, 11, 12};
  unsigned type = 0, is_managed = 0;
  int device = 0;
  unsigned long long device_pointer = 0, begin = 0;
  std::size_t bytes = 0;
  void* values[kAll] = {&type, &device_pointer, &is_managed, &device, &begin, &bytes};
  using Query = int(unsigned, int*, void**, unsigned long long);
  // One call of the driver's for what two of the runtime's say in part.
  static const auto query = reinterpret_cast<Query*>(driver_function("cuPointerGetAttributes"));
  const auto address = reinterpret_cast<unsigned long long>(at);
  if (query == nullptr || query(kAll, which, values, address) != 0) return {};
  constexpr unsigned kHostType = 1, kDeviceType = 2;
  MemoryRange range;
  if (is_managed != 0) {
    range.place = MemoryPlace::kManaged;
  } else if (type == kDeviceType) {
    range.place = MemoryPlace::kDevice;
    range.device = static_cast<std::uint32_t>(device);
  } else if (type == kHostType && device_pointer == address) {
    range.place = MemoryPlace::kPinned;
  } else {
    return {};  // or it was registered, and has another address on the device: kernels do not use that
  }
  range.begin = reinterpret_cast<const std::byte*>(begin);
  range.bytes = begin != 0 ? bytes : 0;
  return range;
}
}  // namespace esker::gpu
