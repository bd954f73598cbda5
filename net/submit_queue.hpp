// Closed buffers on their way from the threads that fill them to the network's owner.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>

#include <esker/aggregator/buffer.hpp>
#include <esker/queue/mpmc_queue.hpp>

namespace esker {

/// Contract. push() by any thread, take() by the network's owner. The queue holds what pools have; what
///           handlers make beyond that goes to a list behind it.
/// Progress. Neither waits, but for the list's lock. A buffer is never refused.
class SubmitQueue {
 public:
  explicit SubmitQueue(std::uint32_t capacity) : queue_{capacity} {}

  /// True: so many have come that the owner should be woken. Not for each: it may share this thread's core,
  /// and a switch of threads costs as much as a buffer.
  bool push(Buffer* buffer) {
    if (!queue_.try_push(buffer)) {
      const std::lock_guard lock(mutex_);
      beyond_.push_back(buffer);
      beyond_count_.fetch_add(1, std::memory_order_release);
    }
    return unseen_.fetch_add(1, std::memory_order_relaxed) + 1 == kWakeAfter;
  }

  bool was_empty() const { return queue_.was_empty() && beyond_count_.load(std::memory_order_acquire) == 0; }

  /// Calls `use(buffer)` for each. True if there was one.
  template <class Use>
  bool take(Use use) {
    bool moved = false;
    unseen_.store(0, std::memory_order_relaxed);
    for (Buffer* buffer = nullptr; queue_.try_pop(buffer); moved = true) use(buffer);
    if (beyond_count_.load(std::memory_order_acquire) > 0) {
      const std::lock_guard lock(mutex_);
      for (Buffer* const buffer : beyond_) use(buffer);
      beyond_count_.fetch_sub(static_cast<std::uint32_t>(beyond_.size()), std::memory_order_relaxed);
      beyond_.clear();
      moved = true;
    }
    return moved;
  }

 private:
  static constexpr std::uint32_t kWakeAfter = 8;

  MpmcQueue<Buffer*> queue_;
  std::mutex mutex_;
  std::deque<Buffer*> beyond_;  // guarded by mutex_
  std::atomic<std::uint32_t> beyond_count_{0};
  std::atomic<std::uint32_t> unseen_{0};  // pushed since the last take(); a hint
};

}  // namespace esker
