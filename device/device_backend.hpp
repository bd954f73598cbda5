// What a back end does for esker::Device: device/cpu/device.cpp, and device/gpu/device.cpp for all GPUs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <esker/device/lane.hpp>
#include <esker/device/platform.hpp>

namespace esker {

namespace gpu {
class Occupancy;
}  // namespace gpu

enum class Backend { kCpu, kCuda, kHip, kSimulated };
/// "cpu", "cuda", "hip", "simulated".
ESKER_API const char* to_string(Backend backend) noexcept;

struct DeviceProperties {
  Backend backend = Backend::kCpu;
  std::uint32_t index = 0;        // among the GPUs of its back end
  std::uint32_t devices = 1;      // of them
  std::string model;              // "NVIDIA H200"; "" on the CPU
  std::string description;        // "cuda: NVIDIA H200, GPU 0 of 4"; "cpu"
  std::uint32_t processors = 1;   // a GPU's processors; host threads that run lanes
  std::uint32_t wave_lanes = 32;  // on the CPU a launch says
  std::uint32_t processor_scratch_bytes = 0;
  std::uint32_t group_scratch_bytes = 0;  // most that a group may have; 0: no limit but memory
  std::uint64_t memory_bytes = 0;         // of the device; on the CPU of the host
  std::string bus_address;                // "0000:1b:00.0"; "" on the CPU
};

/// Whose memory an address is in.
enum class MemoryPlace {
  kPageable,  // the host's, which a device's copies go through other memory for
  kPinned,    // the host's, which kernels reach at the same address; on the CPU any
  kManaged,
  kDevice,
};
struct MemoryRange {
  MemoryPlace place = MemoryPlace::kPageable;
  std::uint32_t device = 0;  // of kDevice: its number among those of its back end
  // The allocation; 0 bytes: not known, which kPageable always is.
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;

  bool holds(const void* at) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(at) - begin) < bytes;
  }
};

enum class StreamPriority { kNormal, kHigh };

namespace detail {

enum class MemoryKind { kDevice, kPinned, kManaged };

/// Contract. As esker::Device says. Streams and events are handles that the back end has made; null stands
///           for none. release() and destroy_*() throw nothing.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;

  virtual const DeviceProperties& properties() const = 0;
  virtual gpu::Occupancy* occupancy() = 0;

  virtual bool reach(std::uint32_t device) = 0;
  virtual void* allocate(MemoryKind kind, std::size_t bytes, bool zeroed, const std::string& what) = 0;
  virtual void release(MemoryKind kind, void* at) noexcept = 0;

  virtual void* make_stream(StreamPriority priority) = 0;
  virtual void destroy_stream(void* stream) noexcept = 0;
  /// For launches that name none. Its maker's for as long as the back end lives.
  virtual void* own_stream() = 0;
  virtual void synchronize(void* stream) = 0;
  virtual bool is_idle(void* stream) = 0;
  virtual void wait_for(void* stream, void* event) = 0;

  virtual void* make_event() = 0;
  virtual void destroy_event(void* event) noexcept = 0;
  virtual void record(void* event, void* stream) = 0;
  virtual bool is_done(void* event) = 0;
  virtual void synchronize_event(void* event) = 0;
  virtual std::chrono::nanoseconds between(void* first, void* second) = 0;

  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void copy_async(void* to, const void* from, std::size_t bytes, void* stream) = 0;
  /// One call for several copies, in any order.
  virtual void copy_all_async(void* const* to, const void* const* from, const std::size_t* bytes,
                              std::size_t n, void* stream) = 0;
  virtual MemoryRange range_of(const void* at) = 0;
  virtual void fill_async(void* at, std::uint8_t value, std::size_t bytes, void* stream) = 0;

  /// A host function in the stream's order.
  virtual void call(void* stream, std::function<void()> function) = 0;
  /// What `put` puts on the stream, to be launched; null where a graph calls `put` again.
  virtual void* capture(void* stream, const std::function<void()>& put) = 0;
  virtual void launch_graph(void* graph, void* stream) = 0;
  virtual void destroy_graph(void* graph) noexcept = 0;

  /// Of the CPU: groups [0, shape.groups()) in chunks, on a team of host threads. Throws what a lane throws.
  using GroupFunction = std::function<void(std::uint64_t first, std::uint64_t last)>;
  virtual void run_groups(const LaunchShape& shape, const GroupFunction& function) = 0;
  virtual void as_current(const std::function<void()>& function) = 0;
  /// Of a GPU: calls `start` with this device as the thread's current one. `start` says what went wrong, or
  /// "".
  virtual void start(const std::function<std::string()>& start) = 0;
};

std::shared_ptr<DeviceBackend> open_cpu();
/// GPUs of the back end that was built; 0 where there is none.
ESKER_API std::uint32_t count_gpus();
/// "cuda", "hip" or "simulated"; null where no GPU's back end was built.
const char* gpu_backend() noexcept;
std::shared_ptr<DeviceBackend> open_gpu(std::uint32_t index);

}  // namespace detail

}  // namespace esker
