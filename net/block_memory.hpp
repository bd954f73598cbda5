// Copies of blocks to and from the heap, where that may be a GPU's memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace esker {

/// Contract. Any thread. A copy may go on until wait() returns; both ends are this host's memory, this PE's
/// heap
///           or one that reached_heap() names.
/// Errors.   Error{kDevice}.
class BlockMemory {
 public:
  virtual void copy(void* to, const void* from, std::uint64_t bytes) = 0;
  /// Of a block, what the network's owner copies in a step before it looks after messages. The last of these
  /// have moved so many steps ago; 0: in this one.
  virtual std::uint64_t bytes_a_step(std::uint32_t steps_without_messages) const = 0;
  /// For all copies so far, whichever thread has begun them.
  virtual void wait_for_copies() = 0;
  /// Where this PE reaches the heap of `pe`; null: it does not.
  virtual std::byte* reached_heap(std::uint32_t pe) const = 0;

 protected:
  ~BlockMemory() = default;
};

}  // namespace esker
