// What one PE has done so far, and how long its buffers took from stage to stage.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <esker/device/platform.hpp>

namespace esker {

/// Counters since the Runtime was constructed, of this PE. All but grow.
struct Statistics {
  std::uint64_t messages_published = 0;    // by lanes
  std::uint64_t messages_by_handlers = 0;  // and replies to requests
  std::uint64_t messages_local = 0;        // routed to this PE
  std::uint64_t messages_remote = 0;       // routed to another
  std::uint64_t messages_direct =
      0;  // of the remote, those that this PE has applied there itself, in no buffer
  std::uint64_t messages_applied = 0;
  // Lanes' calls beside those: they found a message to the same word, and travel in it.
  std::uint64_t combined_local = 0;
  std::uint64_t combined_remote = 0;
  std::uint64_t packages = 0;
  std::uint64_t buffers_sent = 0;               // to other PEs
  std::uint64_t bytes_sent = 0;                 // in them, headers included
  std::uint64_t handler_memory_peak_bytes = 0;  // handlers' messages beyond the pools
};

/// How often a value fell into each bucket, at one moment.
template <std::size_t Buckets>
struct Histogram {
  std::array<std::uint64_t, Buckets> counts{};
  std::uint64_t max = 0;  // the largest value itself

  std::uint64_t count() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t each : counts) sum += each;
    return sum;
  }

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

/// Histograms since the Runtime was constructed, of this PE; docs/reference/tracing.md says what each begins
/// and ends with. Each counts node buffers, package_wait packages.
struct StageStatistics {
  DurationHistogram package_wait;  // published to repacked; empty unless the trace setting is on
  DurationHistogram gather;        // a node buffer's first message to its closing
  DurationHistogram send;          // handed to the transport to sent; to other PEs only
  DurationHistogram apply;         // received, or kept here, to applied
  FillHistogram fill;              // used bytes over capacity; `max` in millionths
};

/// One JSON object: each histogram with count, p50, p99, max and the buckets that are not empty. Durations
/// are in microseconds. A quantile is the upper end of its bucket, or the maximum if that is lower.
ESKER_API std::string to_json(const StageStatistics& stages);

}  // namespace esker
