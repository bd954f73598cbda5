// Histograms with fixed buckets, cheap enough to be always on where something happens once a node buffer.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include <esker/aggregator/statistics.hpp>

namespace esker {

constexpr std::size_t duration_bucket(std::uint64_t nanoseconds) {
  return std::min<std::size_t>(std::bit_width(nanoseconds),
                               std::tuple_size_v<decltype(DurationHistogram::counts)> - 1);
}
constexpr std::size_t fill_bucket(std::uint64_t used, std::uint64_t capacity) {
  constexpr std::size_t kBuckets = std::tuple_size_v<decltype(FillHistogram::counts)>;
  return used == 0 ? 0 : std::min<std::size_t>((used * kBuckets - 1) / capacity, kBuckets - 1);
}

/// A histogram that grows. Any thread adds and reads; a reading is racy.
template <class Values>
class HistogramCounters {
 public:
  void add(std::size_t bucket, std::uint64_t value) {
    counts_[bucket].fetch_add(1, std::memory_order_relaxed);
    std::uint64_t max = max_.load(std::memory_order_relaxed);
    while (value > max && !max_.compare_exchange_weak(max, value, std::memory_order_relaxed)) {
    }
  }
  Values read() const {
    Values values;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      values.counts[i] = counts_[i].load(std::memory_order_relaxed);
    }
    values.max = max_.load(std::memory_order_relaxed);
    return values;
  }

 private:
  std::array<std::atomic<std::uint64_t>, std::tuple_size_v<decltype(Values::counts)>> counts_{};
  std::atomic<std::uint64_t> max_{0};
};

class DurationCounters : public HistogramCounters<DurationHistogram> {
 public:
  /// A clock that went back counts as no time.
  void record(std::int64_t nanoseconds) {
    const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(nanoseconds, 0));
    add(duration_bucket(ns), ns);
  }
};

/// `max` is in millionths of the capacity.
class FillCounters : public HistogramCounters<FillHistogram> {
 public:
  void record(std::uint64_t used, std::uint64_t capacity) {
    add(fill_bucket(used, capacity), used * 1'000'000 / capacity);
  }
};

}  // namespace esker
