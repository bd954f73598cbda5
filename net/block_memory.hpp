// Copies of blocks to and from the heap, where that may be a GPU's memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace esker {

/// Contract. Any thread. copy() is done on return; both ends are this host's memory, or what device() gives
/// out. Errors.   Error{kDevice}.
class BlockMemory {
 public:
  virtual void copy(void* to, const void* from, std::uint64_t bytes) = 0;
  /// Where this PE reaches the heap of `pe`; null: it does not.
  virtual std::byte* reached_heap(std::uint32_t pe) const = 0;

 protected:
  ~BlockMemory() = default;
};

}  // namespace esker
