// One processor that runs kernels, a GPU or the host's cores: memory, streams, copies, launches. Nothing here
// includes a vendor's header, unless a device compiler reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <esker/device/device_backend.hpp>
#include <esker/device/device_graph.hpp>
#include <esker/device/device_memory.hpp>
#include <esker/device/lane.hpp>
#include <esker/device/platform.hpp>
#include <esker/device/stream.hpp>

namespace esker {

namespace gpu {
class Occupancy;
}  // namespace gpu

namespace detail {
/// How a kernel starts, in each compiler pass another way (device/device_launch.hpp).
template <class Pass>
struct DeviceLaunch;
}  // namespace detail

/// A processor that is open.
///
/// State    A handle: copies mean the same processor, which stays open while a handle, a stream, an event or
///          an array of it lives.
/// Contract Any thread may call. A call leaves the thread's current device, which CUDA and HIP have, as it
///          was. On the CPU a stream's work is done when the call returns, in the order of the calls.
/// Errors   Error{kDevice} or {kOutOfMemory}, naming the device, the call and its values. A kernel that
///          failed shows at a later call.
class ESKER_API Device {
 public:
  /// "auto": the first GPU of the back end that was built, else the CPU. "cpu". "cuda", "hip" or
  /// "simulated": its first GPU; "cuda:1": another one.
  ///
  /// Errors. Error{kDevice}: says what was asked for, what this build and this machine have, what to do.
  static Device open(const std::string& name = "auto");

  const DeviceProperties& properties() const { return backend_->properties(); }
  /// "cpu", or "cuda: NVIDIA H200, GPU 0 of 4".
  std::string name() const { return properties().description; }
  Backend backend() const { return properties().backend; }

  /// `n` elements of the device's own memory, for kernels and copies. On the CPU it is host memory.
  template <class T>
  DeviceArray<T> memory(std::size_t n, const Allocation& what = {}) const {
    return {backend_, n, what};
  }
  /// Host memory that never moves, which kernels reach at the same address, and the fastest to copy from.
  template <class T>
  PinnedArray<T> pinned(std::size_t n, const Allocation& what = {}) const {
    return {backend_, n, what};
  }
  /// Memory that moves to the side that touches it.
  template <class T>
  ManagedArray<T> managed(std::size_t n, const Allocation& what = {}) const {
    return {backend_, n, what};
  }

  Stream stream(StreamPriority priority = StreamPriority::kNormal) const { return {backend_, priority}; }
  Event event() const { return Event(backend_); }

  /// What `put` puts on the stream: kernels, copies and calls, to be launched together, again and again.
  /// Nothing of it runs yet.
  ///
  /// Contract. `put` waits for nothing and allocates nothing, and does not throw halfway. On CUDA it is
  ///           called once, here; on the CPU and with HIP at each launch, and not here.
  /// Errors.   Error{kDevice}: `put` does what cannot be in a graph. What `put` throws.
  DeviceGraph graph(const Stream& stream, std::function<void(const Stream&)> put) const {
    return {backend_, stream, std::move(put)};
  }

  /// Whether this device's lanes and copies reach `other`'s memory with no way through the host's: from this
  /// call on they do, if the machine can. On the CPU always; never the memory of another back end.
  bool reach(const Device& other) const {
    return other.backend() == backend() && backend_->reach(other.properties().index);
  }

  /// Waits for the copy, and for nothing else. Either side is host memory or this device's.
  void copy(void* to, const void* from, std::size_t bytes) const { backend_->copy(to, from, bytes); }
  /// `from` stays as it is, and `to` is not read, until the stream has come there.
  void copy_async(void* to, const void* from, std::size_t bytes, const Stream& stream) const {
    backend_->copy_async(to, from, bytes, stream.native());
  }
  /// `n` copies by one call of the driver's, in any order, where it has such a call: CUDA from 13.0 on.
  /// Elsewhere one after the other.
  void copy_all_async(void* const* to, const void* const* from, const std::size_t* bytes, std::size_t n,
                      const Stream& stream) const {
    backend_->copy_all_async(to, from, bytes, n, stream.native());
  }
  MemoryRange range_of(const void* at) const { return backend_->range_of(at); }
  /// Sets each byte.
  void fill(void* at, std::uint8_t value, std::size_t bytes, const Stream& stream) const {
    backend_->fill_async(at, value, bytes, stream.native());
  }

  /// Runs `kernel` once a lane: with a Lane, or with a GroupLane& if it works together with the other lanes
  /// of its group. Returns once it is on the stream. Without a stream it runs to its end. `kernel` is copied.
  ///
  /// On a GPU each group is lent `scratch_bytes` of scratchpad (GroupLane::lent_scratch()).
  ///
  /// Errors. Error{kDevice}: the launch cannot be made, or this device is a GPU and the source was not
  ///         compiled by its compiler. On the CPU what a lane throws is thrown here.
  template <class Kernel, class Pass = detail::Pass>
  void launch(const LaunchShape& shape, const Kernel& kernel, const Stream& stream,
              std::uint32_t scratch_bytes = 0) const {
    detail::DeviceLaunch<Pass>::launch(*backend_, shape, kernel, stream.native(), scratch_bytes);
  }
  /// Groups of this kernel that the device holds at a time, each lent so much scratchpad: for launches whose
  /// groups stay. On the CPU its host threads. Error{kDevice}: not even one.
  template <class Kernel, class Pass = detail::Pass>
  std::uint64_t resident_groups(const Kernel& kernel, std::uint32_t group_lanes,
                                std::uint32_t scratch_bytes = 0) const {
    return detail::DeviceLaunch<Pass>::resident_groups(*backend_, kernel, group_lanes, scratch_bytes);
  }
  template <class Kernel, class Pass = detail::Pass>
  void launch(std::uint64_t lanes, const Kernel& kernel, const Stream& stream) const {
    const LaunchShape shape{lanes};
    detail::DeviceLaunch<Pass>::launch(*backend_, shape, kernel, stream.native());
  }
  template <class Kernel, class Pass = detail::Pass>
  void launch(const LaunchShape& shape, const Kernel& kernel) const {
    detail::DeviceLaunch<Pass>::launch(*backend_, shape, kernel, backend_->own_stream());
    backend_->synchronize(backend_->own_stream());
  }
  template <class Kernel, class Pass = detail::Pass>
  void launch(std::uint64_t lanes, const Kernel& kernel) const {
    const LaunchShape shape{lanes};
    detail::DeviceLaunch<Pass>::launch(*backend_, shape, kernel, backend_->own_stream());
    backend_->synchronize(backend_->own_stream());
  }

  /// Calls `function` with this device as the thread's current one, for what calls CUDA or HIP by itself.
  void as_current(const std::function<void()>& function) const { backend_->as_current(function); }

  /// The same for copies of this handle, and for no other one while it lives.
  const void* identity() const noexcept { return backend_.get(); }

  /// Divides a GPU between those that launch on it; null on the CPU. Each open() makes its own, so what
  /// shares a GPU shares the Device.
  gpu::Occupancy* occupancy() const { return backend_->occupancy(); }

 private:
  explicit Device(std::shared_ptr<detail::DeviceBackend> backend) : backend_{std::move(backend)} {}

  std::shared_ptr<detail::DeviceBackend> backend_;
};

}  // namespace esker

#include <esker/device/device_launch.hpp>  // the templates
