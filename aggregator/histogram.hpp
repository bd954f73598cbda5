// Histograms with fixed buckets, cheap enough to be always on where something happens once a node buffer.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <tuple>

namespace esker {

/// How often a value fell into each bucket, at one moment.
template <std::size_t Buckets>
struct Histogram {
  std::array<std::uint64_t, Buckets> counts{};
  std::uint64_t max = 0;  // the largest value itself

  std::uint64_t count() const { return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}); }

  /// The bucket in which the value of rank ceil(quantile * count()) lies, 0 < quantile <= 1. Requires
  /// count() > 0.
  std::size_t bucket_at(double quantile) const {
    const auto wanted = quantile * static_cast<double>(count());
    std::uint64_t seen = 0;
    std::size_t bucket = 0;
    while (bucket + 1 < Buckets) {
      seen += counts[bucket];
      if (seen > 0 && static_cast<double>(seen) >= wanted) break;
      ++bucket;
    }
    return bucket;
  }
};

/// Nanoseconds: bucket 0 holds 0, bucket b holds 2^(b-1) to 2^b - 1; the last one all that is longer.
using DurationHistogram = Histogram<48>;
/// Used bytes of a buffer over its capacity: bucket b holds more than 5 b % and at most 5 (b + 1) %.
using FillHistogram = Histogram<20>;

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
