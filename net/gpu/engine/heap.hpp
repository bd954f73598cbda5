// The symmetric heap's memory: a GPU's, or page-locked memory of the host.
#pragma once

#include <cstddef>
#include <cstdint>

#include <esker/net/device_engine.hpp>
#include <esker/net/gpu/engine/opened_device.hpp>

namespace esker::gpu {

/// Contract. The user's thread. Offsets and sizes lie within limit_bytes().
/// Errors.   Error{kOutOfMemory} or {kDevice}.
class Heap {
 public:
  Heap(const OpenedDevice& device, const DeviceSettings& settings);

  std::byte* base() const { return base_; }
  std::uint64_t limit_bytes() const { return limit_bytes_; }
  // Each waits until it is done.
  void clear(std::uint64_t offset, std::uint64_t bytes) const;
  void read(std::uint64_t offset, void* to, std::uint64_t bytes) const;
  void write(std::uint64_t offset, const void* from, std::uint64_t bytes) const;
  /// It stays allocated to the end of the process, for peers that may still write into it.
  void keep() { on_device_.keep(); }

 private:
  const OpenedDevice& device_;
  std::uint64_t limit_bytes_;
  DeviceArray<std::byte> on_device_;
  PinnedArray<std::byte> on_host_;
  std::byte* base_ = nullptr;
};

}  // namespace esker::gpu
