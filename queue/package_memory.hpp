// Host memory for a package queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <esker/device/platform.hpp>
#include <esker/queue/package_queue.hpp>

namespace esker {

/// Owns what a package queue of host threads stands in. It outlives every copy of queue().
template <template <class> class AtomicWord>
class BasicPackageMemory {
 public:
  using Queue = BasicPackageQueue<AtomicWord>;

  /// `slots` is a power of two, `payload_bytes` a multiple of kLineBytes.
  BasicPackageMemory(std::uint32_t slots, std::uint32_t payload_bytes)
      : lines_(Queue::storage_bytes(slots, payload_bytes) / kLineBytes),
        queue_(&tail_, &head_, lines_.front().bytes, slots, payload_bytes) {}
  BasicPackageMemory(const BasicPackageMemory&) = delete;
  BasicPackageMemory& operator=(const BasicPackageMemory&) = delete;

  Queue queue() const { return queue_; }

 private:
  struct alignas(kLineBytes) Line {
    std::byte bytes[kLineBytes];
  };

  typename Queue::Counter tail_{};
  typename Queue::Counter head_{};
  std::vector<Line> lines_;  // zeroed by its constructor
  Queue queue_;
};

using PackageMemory = BasicPackageMemory<SystemAtomic>;

}  // namespace esker
