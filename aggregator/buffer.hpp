// Node buffers and the pools that they come from and go back to.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <esker/aggregator/trace_event.hpp>
#include <esker/device/platform.hpp>
#include <esker/queue/spsc_queue.hpp>

namespace esker {

class BufferPool;

/// Memory for one frame. Written by the thread that fills it, then owned by the network until recycled.
struct Buffer {
  explicit Buffer(std::uint32_t capacity_bytes, BufferPool* pool)
      : Buffer{{new (std::align_val_t{kLineBytes}) std::byte[capacity_bytes], Free{}}, capacity_bytes, pool} {
  }
  /// `memory` is aligned to kLineBytes.
  Buffer(std::shared_ptr<std::byte> memory, std::uint32_t capacity_bytes, BufferPool* pool)
      : bytes{std::move(memory)}, capacity{capacity_bytes}, home{pool} {}

  struct Free {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{kLineBytes}); }
  };
  std::shared_ptr<std::byte> bytes;
  std::uint32_t capacity;
  std::uint32_t used = 0;         // bytes of the frame, once closed
  std::uint32_t messages = 0;     // once closed
  std::uint32_t destination = 0;  // PE
  BufferJourney journey;
  BufferPool* home;  // null: freed instead of recycled
};

/// Frees a buffer or gives it back to its pool. Called by the network's owner.
void recycle(Buffer* buffer);

/// At most `limit` buffers, made when first needed; a fixed address for as long as one is out.
///
/// Contract. One thread at a time acquires (its filler), one thread gives back (the network's owner).
///           The pool outlives the network's last recycle().
/// Progress. Neither waits: an exhausted pool says so, which is how the network pushes back.
class BufferPool {
 public:
  /// In `memory`, of limit * buffer_bytes bytes, if it is not null. Buffers are aligned to kLineBytes.
  BufferPool(std::uint32_t buffer_bytes, std::uint32_t limit, std::shared_ptr<std::byte> memory = nullptr)
      : buffer_bytes_{buffer_bytes}, limit_{limit}, memory_{std::move(memory)}, free_{limit} {
    all_.reserve(limit);
  }

  /// Null: every buffer is on its way.
  Buffer* try_acquire() {
    Buffer* buffer = nullptr;
    if (free_.try_pop(buffer)) return buffer;
    if (all_.size() == limit_) return nullptr;
    all_.push_back(memory_ == nullptr ? std::make_unique<Buffer>(buffer_bytes_, this)
                                      : std::make_unique<Buffer>(next_of_memory(), buffer_bytes_, this));
    made_.store(static_cast<std::uint32_t>(all_.size()), std::memory_order_relaxed);
    return all_.back().get();
  }
  void give_back(Buffer* buffer) { free_.try_push(buffer); }  // holds `limit` buffers: never full

  /// Racy, any thread: whether try_acquire() would succeed.
  bool had_one() const { return !free_.was_empty() || made_.load(std::memory_order_relaxed) < limit_; }
  std::uint32_t buffer_bytes() const { return buffer_bytes_; }
  std::uint32_t limit() const { return limit_; }

 private:
  std::shared_ptr<std::byte> next_of_memory() const {
    return {memory_, memory_.get() + all_.size() * std::size_t{buffer_bytes_}};
  }

  std::uint32_t buffer_bytes_;
  std::uint32_t limit_;
  std::shared_ptr<std::byte> memory_;
  SpscQueue<Buffer*> free_;
  std::vector<std::unique_ptr<Buffer>> all_;  // filler's
  std::atomic<std::uint32_t> made_{0};        // == all_.size(), for had_one()
};

inline void recycle(Buffer* buffer) {
  if (buffer->home != nullptr) {
    buffer->home->give_back(buffer);
  } else {
    delete buffer;
  }
}

}  // namespace esker
