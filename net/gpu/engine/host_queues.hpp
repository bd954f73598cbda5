// The package queues from the lanes of a GPU to host threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include <esker/device/device.hpp>
#include <esker/net/device_engine.hpp>
#include <esker/net/gpu/pe_state.hpp>
#include <esker/queue/package_queue.hpp>

namespace esker::gpu {

/// A queue's memory: each side's counter is where that side is, so no atomic crosses the bus.
class HostQueueMemory {
 public:
  HostQueueMemory() = default;
  HostQueueMemory(const Device& device, std::uint32_t slots, std::uint32_t package_bytes,
                  const std::string& what)
      : slots_{device.pinned<std::byte>(PackageQueue::storage_bytes(slots, package_bytes), {what})},
        head_{device.pinned<PackageQueue::Counter>(1, {"the counter of " + what})},
        tail_{device.memory<PackageQueue::Counter>(1, {"the counter of " + what})},
        queue_(tail_.data(), head_.data(), slots_.data(), slots, package_bytes) {}

  PackageQueue queue() const { return queue_; }

 private:
  PinnedArray<std::byte> slots_;
  PinnedArray<PackageQueue::Counter> head_;
  DeviceArray<PackageQueue::Counter> tail_;
  PackageQueue queue_;
};

/// The queue of the user's kernels, and that of progress kernels where there are any.
class HostQueues {
 public:
  HostQueues(const Device& device, const DeviceSettings& settings)
      : of_lanes_(device, settings.package_slots, settings.package_bytes, "the package queue") {
    if (!settings.heap_on_device) return;
    of_progress_ = HostQueueMemory(device, std::min(settings.package_slots, kProgressSlots),
                                   settings.package_bytes, "the package queue of progress kernels");
  }
  void fill_in(PeState& pe_state) const {
    pe_state.host_queue = of_lanes_.queue();
    pe_state.progress_queue = of_progress_.queue();
  }

 private:
  static constexpr std::uint32_t kProgressSlots = 256;  // the network's owner empties them at every step

  HostQueueMemory of_lanes_, of_progress_;
};

}  // namespace esker::gpu
