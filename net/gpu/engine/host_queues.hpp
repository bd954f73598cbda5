// The package queues from the lanes of a GPU to host threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include <esker/device/gpu/api.hpp>
#include <esker/net/device_engine.hpp>
#include <esker/net/gpu/pe_state.hpp>
#include <esker/queue/package_queue.hpp>

namespace esker::gpu {

/// A queue's memory: each side's counter is where that side is, so no atomic crosses the bus.
class HostQueueMemory {
 public:
  HostQueueMemory() = default;
  HostQueueMemory(std::uint32_t slots, std::uint32_t package_bytes, const std::string& what)
      : slots_(PackageQueue::storage_bytes(slots, package_bytes), what),
        head_(sizeof(PackageQueue::Counter), "the counter of " + what),
        tail_(sizeof(PackageQueue::Counter), "the counter of " + what),
        queue_(tail_.as<PackageQueue::Counter>(), head_.as<PackageQueue::Counter>(), slots_.as<std::byte>(),
               slots, package_bytes) {}

  PackageQueue queue() const { return queue_; }

 private:
  PinnedMemory slots_, head_;
  DeviceMemory tail_;
  PackageQueue queue_;
};

/// The queue of the user's kernels, and that of progress kernels where there are any.
class HostQueues {
 public:
  explicit HostQueues(const DeviceSettings& settings)
      : of_lanes_(settings.package_slots, settings.package_bytes, "the package queue") {
    if (!settings.heap_on_device) return;
    of_progress_ = HostQueueMemory(std::min(settings.package_slots, kProgressSlots), settings.package_bytes,
                                   "the package queue of progress kernels");
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
