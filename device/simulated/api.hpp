// A GPU of threads, as the rest of the library calls it: the same names as device/cuda/api.hpp.
//
// For tests of what runs on GPUs where there is none. What it promises is what Esker asks of a GPU: streams,
// memory that other processes of the host reach, kernels whose groups run side by side and beside those of
// other streams. It has no speed worth measuring, and a kernel's fault is the process's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>

#include <esker/device/device_backend.hpp>

#define ESKER_GPU(name) ::esker::simulated::name
#define ESKER_GPU_START(kernel, groups, group_lanes, scratch_bytes, stream, ...) \
  ::esker::simulated::start(stream, groups, group_lanes, scratch_bytes, kernel, __VA_ARGS__)

namespace esker::simulated {

enum ApiError {
  Success,
  ErrorInvalidValue,
  ErrorMemoryAllocation,
  ErrorNotReady,
  ErrorPeerAccessAlreadyEnabled,
  ErrorPeerAccessUnsupported
};
const char* GetErrorName(ApiError error);
const char* GetErrorString(ApiError error);
ApiError GetLastError();

// Devices: so many that each PE of a test has one, or as many as the environment's SIMULATED_DEVICES says.
// Their copies are done at once, unless SIMULATED_COPY gives them a speed (device/simulated/engines.hpp).
// Each reaches the memory of all others, but for the pairs in the environment's SIMULATED_NO_ACCESS:
// "0-1,2-0" keeps device 0 from that of 1, and 2 from that of 0.
struct Properties {
  char name[32];
  int multiProcessorCount;
  int warpSize;
};
enum class Attribute { kProcessors, kProcessorScratch, kGroupScratch };
ApiError GetDeviceCount(int* count);
ApiError GetDevice(int* device);
ApiError SetDevice(int device);
ApiError GetDeviceProperties(Properties* properties, int device);
ApiError DeviceGetAttribute(int* value, Attribute which, int device);
ApiError DeviceSynchronize();
ApiError DeviceEnablePeerAccess(int device, unsigned flags);
ApiError DeviceGetPCIBusId(char* address, int bytes, int device);
ApiError DeviceGetByPCIBusId(int* device, const char* address);
enum PeerAttribute { DevP2PAttrNativeAtomicSupported };
ApiError DeviceGetP2PAttribute(int* value, PeerAttribute which, int device, int peer);

// Memory.
enum MemcpyKind { MemcpyDefault };
struct MemoryHandle {
  std::uint64_t process, descriptor, bytes, device;
  std::uint64_t reserved[4];
};
inline constexpr unsigned IpcMemLazyEnablePeerAccess = 1;
ApiError MemGetInfo(std::size_t* free, std::size_t* total);
ApiError Malloc(void** at, std::size_t bytes);
ApiError MallocManaged(void** at, std::size_t bytes);
/// Of the host, as pinned memory is.
ApiError MallocHost(void** at, std::size_t bytes);
MemoryRange range_of(const void* at);
/// Ends the program if another process has it open: what its kernels do then is undefined on a GPU.
ApiError Free(void* at);
ApiError IpcGetMemHandle(MemoryHandle* handle, void* at);
ApiError IpcOpenMemHandle(void** at, MemoryHandle handle, unsigned flags);
ApiError IpcCloseMemHandle(void* at);

// Streams.
class Queue;
using Stream = Queue*;  // null: one for all calls that name none
inline constexpr unsigned StreamNonBlocking = 1;
ApiError DeviceGetStreamPriorityRange(int* least, int* greatest);
ApiError StreamCreateWithFlags(Stream* stream, unsigned flags);
ApiError StreamCreateWithPriority(Stream* stream, unsigned flags, int priority);
ApiError StreamDestroy(Stream stream);
ApiError StreamQuery(Stream stream);
ApiError StreamSynchronize(Stream stream);
ApiError MemcpyAsync(void* to, const void* from, std::size_t bytes, MemcpyKind kind, Stream stream);
ApiError MemsetAsync(void* at, int value, std::size_t bytes, Stream stream);

// Events.
class Mark;
using Event = Mark*;
ApiError EventCreate(Event* event);
ApiError EventDestroy(Event event);
ApiError EventRecord(Event event, Stream stream);
ApiError EventQuery(Event event);
ApiError EventSynchronize(Event event);
ApiError EventElapsedTime(float* milliseconds, Event first, Event second);
ApiError StreamWaitEvent(Stream stream, Event event, unsigned flags);

// Graphs: of one stream, without events.
using HostFunction = void (*)(void* data);
ApiError LaunchHostFunc(Stream stream, HostFunction function, void* data);
class Recording;
using CapturedGraph = Recording*;
using LaunchableGraph = Recording*;
enum StreamCaptureStatus { StreamCaptureStatusNone, StreamCaptureStatusActive };
enum StreamCaptureMode { StreamCaptureModeThreadLocal };
ApiError StreamBeginCapture(Stream stream, StreamCaptureMode mode);
ApiError StreamIsCapturing(Stream stream, StreamCaptureStatus* status);
ApiError StreamEndCapture(Stream stream, CapturedGraph* graph);
ApiError GraphInstantiateWithFlags(LaunchableGraph* launchable, CapturedGraph graph,
                                   unsigned long long flags);
ApiError GraphLaunch(LaunchableGraph graph, Stream stream);
ApiError GraphDestroy(CapturedGraph graph);
ApiError GraphExecDestroy(LaunchableGraph graph);

// Kernels.
struct FunctionAttributes {
  std::size_t sharedSizeBytes;
};
inline constexpr int FuncAttributeMaxDynamicSharedMemorySize = 0;
ApiError FuncGetAttributes(FunctionAttributes* attributes, const void* kernel);
ApiError FuncSetAttribute(const void* kernel, int attribute, int value);
ApiError occupancy(int* groups, int lanes, std::size_t scratch_bytes);
template <class Kernel>
ApiError OccupancyMaxActiveBlocksPerMultiprocessor(int* groups, Kernel* /*kernel*/, int lanes,
                                                   std::size_t scratch_bytes) {
  return occupancy(groups, lanes, scratch_bytes);
}
/// Queues a kernel: `lane` once a lane.
void launch(Stream stream, std::uint32_t groups, std::uint32_t group_lanes, std::uint32_t scratch_bytes,
            std::function<void()> lane);
/// The same of a function that takes these arguments, as a copy of each.
template <class... Parameters, class... Arguments>
void start(Stream stream, std::uint32_t groups, std::uint32_t group_lanes, std::uint32_t scratch_bytes,
           void (*kernel)(Parameters...), const Arguments&... arguments) {
  launch(stream, groups, group_lanes, scratch_bytes,
         [kernel, copies = std::tuple<Parameters...>(arguments...)] { std::apply(kernel, copies); });
}

}  // namespace esker::simulated

namespace esker::gpu {
inline constexpr const char* kBackend = "simulated";
using Stream = simulated::Stream;
using Event = simulated::Event;
using CapturedGraph = simulated::CapturedGraph;
using LaunchableGraph = simulated::LaunchableGraph;
using ApiError = simulated::ApiError;
using MemoryHandle = simulated::MemoryHandle;
using Properties = simulated::Properties;
using DeviceAttribute = simulated::Attribute;
using FunctionAttributes = simulated::FunctionAttributes;
inline constexpr DeviceAttribute kProcessors = DeviceAttribute::kProcessors;
inline constexpr DeviceAttribute kProcessorScratch = DeviceAttribute::kProcessorScratch;
inline constexpr DeviceAttribute kGroupScratch = DeviceAttribute::kGroupScratch;
inline constexpr auto kScratchAttribute = simulated::FuncAttributeMaxDynamicSharedMemorySize;
inline bool is_out_of_order(const FunctionAttributes&) { return false; }
inline bool is_shared_at_a_time(int) { return false; }  // each process has one of its own
inline constexpr bool kHeapTakesPeersAtomics = true;
inline ApiError allocate_pinned(void** at, std::size_t bytes) { return simulated::MallocHost(at, bytes); }
inline ApiError free_pinned(void* at) { return simulated::Free(at); }
inline std::optional<ApiError> copy_together(void* const*, const void* const*, const std::size_t*,
                                             std::size_t, int, Stream) {
  return std::nullopt;
}
/// A graph may have host functions.
inline constexpr bool kGraphsTakeFunctions = true;
inline ApiError launch_host_function(Stream stream, void (*function)(void*), void* data) {
  return simulated::LaunchHostFunc(stream, function, data);
}
inline MemoryRange range_of(const void* at) { return simulated::range_of(at); }
}  // namespace esker::gpu
