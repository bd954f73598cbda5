// A PE's state in memory: the host's copy, those that kernels read, and the words that both sides write.
#pragma once

#include <atomic>
#include <cstdint>

#include <esker/net/gpu/engine/opened_device.hpp>
#include <esker/net/gpu/pe_state.hpp>

namespace esker::gpu {

/// Contract. The user's thread changes state() and calls publish(). Any thread calls the others.
/// Ordering. Each copy is written in the order of the stream whose kernels read it, and publish() waits for
///           both: a lane never reads a copy that is half written.
class PeStateMemory {
 public:
  PeStateMemory(const OpenedDevice& device, std::uint32_t pe, std::uint32_t n_pes);

  PeState& state() { return state_; }
  const PeState& state() const { return state_; }
  void publish() const;
  /// In device memory.
  const PeState* for_kernels() const { return for_kernels_.data(); }
  const PeState* for_progress_kernels() const { return for_progress_kernels_.data(); }

  HostWords& host() const { return host_[0]; }
  /// Messages may touch the heap up to here; publishes.
  void set_heap_end(std::byte* base, std::uint64_t bytes);
  std::uint64_t heap_end() const { return heap_end_.load(std::memory_order_relaxed); }
  /// Tells lanes that wait that the host empties nothing any more. Throws nothing.
  void announce_abandoned() const;

 private:
  const OpenedDevice& device_;
  PinnedArray<HostWords> host_;
  DeviceArray<Totals> totals_;
  DeviceArray<DeviceWords> words_;
  DeviceArray<PeState> for_kernels_, for_progress_kernels_;
  PeState state_{};
  std::atomic<std::uint64_t> heap_end_{0};
};

}  // namespace esker::gpu
