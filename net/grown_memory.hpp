// How much memory handlers' messages take beyond the pools, until the network has sent or applied them.
#pragma once

#include <atomic>
#include <cstdint>

namespace esker {

/// Contract. Any thread. More than `limit` bytes is the caller's error to raise.
class GrownMemory {
 public:
  explicit GrownMemory(std::uint64_t limit_bytes) : limit_{limit_bytes} {}

  /// Bytes that live now, these included.
  std::uint64_t add(std::uint64_t bytes) {
    const std::uint64_t live = live_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    std::uint64_t peak = peak_.load(std::memory_order_relaxed);
    while (live > peak && !peak_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
    }
    return live;
  }
  void remove(std::uint64_t bytes) { live_.fetch_sub(bytes, std::memory_order_relaxed); }

  std::uint64_t limit_bytes() const { return limit_; }
  std::uint64_t peak_bytes() const { return peak_.load(std::memory_order_relaxed); }
  /// Handlers outrun the network: lanes should hold back.
  bool was_congested() const { return live_.load(std::memory_order_relaxed) > limit_ / 4; }

 private:
  const std::uint64_t limit_;
  std::atomic<std::uint64_t> live_{0};
  std::atomic<std::uint64_t> peak_{0};
};

}  // namespace esker
