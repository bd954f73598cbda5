// A PE's GPU, opened: its streams, and errors that name the kernel.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include <esker/device/device.hpp>
#include <esker/device/gpu/api.hpp>
#include <esker/device/gpu/occupancy.hpp>

namespace esker::gpu {

/// Contract. Any thread. Each thread calls use() before it calls the device: a thread has a current device of
///           its own, and the user may change it.
/// Errors.   Error{kDevice}; where a kernel may be the cause, it is named.
class OpenedDevice {
 public:
  /// Of the GPUs of the host, the one with this PE's number among the PEs there, in turn.
  explicit OpenedDevice(std::uint32_t rank_on_host);

  const Device& device() const { return device_; }
  int number() const { return static_cast<int>(device_.properties().index); }
  std::uint32_t devices() const { return device_.properties().devices; }  // of the host
  /// "cuda: NVIDIA H200, GPU 0 of 4".
  const std::string& name() const { return device_.properties().description; }

  Stream user_stream() const { return native(user_stream_); }
  Stream copy_stream() const { return native(copy_stream_); }
  Stream block_stream() const { return native(block_stream_); }
  /// Of the highest priority: first in line for space on the device.
  Stream progress_stream() const { return native(progress_stream_); }

  /// The broker of launches and progress kernels on it.
  Occupancy& occupancy() const { return *device_.occupancy(); }

  void use() const;
  void copy(void* to, const void* from, std::size_t bytes, Stream stream, const char* what) const;
  void wait_for(Stream stream, const char* what) const;
  /// Whether a kernel of the user's still runs. Throws if one has failed.
  bool was_running() const;
  /// Throws if a kernel on the progress stream has failed.
  void check_progress_stream() const;
  /// Waits until no stream has work; false: one still has after `patience`, if that is not 0. Throws nothing.
  bool try_wait_for_all(std::chrono::seconds patience) const;
  /// Before the memory that kernels use is freed. Throws nothing.
  void finish() const;

  /// The kernel that is launched next, for messages. The name outlives this object.
  void set_kernel(const char* name) { kernel_.store(name, std::memory_order_relaxed); }
  std::string kernel_name() const;

 private:
  static Stream native(const esker::Stream& stream) { return static_cast<Stream>(stream.native()); }

  const Device device_;
  const esker::Stream user_stream_, copy_stream_, block_stream_, progress_stream_;
  std::atomic<const char*> kernel_{nullptr};
};

}  // namespace esker::gpu
