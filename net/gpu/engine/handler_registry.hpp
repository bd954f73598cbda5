// The handlers whose code a GPU has, and whose turn it is.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <esker/net/gpu/handler_on_device.hpp>
#include <esker/net/gpu/totals.hpp>
#include <esker/net/handler_table.hpp>

namespace esker::gpu {

/// Contract. The user's thread adds; the network's owner and the starter of progress kernels read meanwhile.
///           At most HandlerTable::kMaxHandlers, and the library's own.
/// Ordering. [handler] what add() stores  happens before  a progress kernel of that handler is chosen and
///           started
class HandlerRegistry {
 public:
  struct Handler {
    HandlerOnDevice code;
    std::uint32_t index;
    std::uint32_t scratch_bytes;  // of a group of its progress kernel, beside the pool
  };

  void add(Handler handler) {
    const std::size_t known = known_.load(std::memory_order_relaxed);
    handlers_[known] = std::move(handler);
    known_.store(known + 1, std::memory_order_release);  // [handler]
  }
  std::size_t known() const { return known_.load(std::memory_order_acquire); }  // [handler]
  const Handler& operator[](std::size_t at) const { return handlers_[at]; }

  /// Of the handlers whose messages wait, as waiting_bit()s, the next one behind `last`; `last` if none
  /// waits.
  std::size_t next_in_turn(std::uint64_t waiting, std::size_t last) const {
    const std::size_t handlers = known();
    for (std::size_t i = 1; i <= handlers; ++i) {
      const std::size_t next = (last + i) % handlers;
      if ((waiting & waiting_bit(handlers_[next].index + 1)) != 0) return next;
    }
    return last;
  }

 private:
  // Allocated in full at the start: an entry never moves.
  const std::unique_ptr<Handler[]> handlers_ = std::make_unique<Handler[]>(HandlerTable::kMaxHandlers + 1);
  std::atomic<std::size_t> known_{0};
};

}  // namespace esker::gpu
