// Times in buckets: four for each power of two of nanoseconds, so a time is known to a quarter.
#pragma once

#include <bit>
#include <cstdint>

namespace esker::pipeline::detail {

struct LatencyBuckets {
  static constexpr std::uint32_t kNumber = 188;  // to 2^48 ns, three days; the last one has all beyond

  static constexpr std::uint32_t of(std::uint64_t ns) {
    if (ns < 4) return static_cast<std::uint32_t>(ns);
    const auto octave = static_cast<std::uint32_t>(std::bit_width(ns)) - 1;
    const std::uint32_t bucket = (octave - 1) * 4 + static_cast<std::uint32_t>(ns >> (octave - 2) & 3);
    return bucket < kNumber ? bucket : kNumber - 1;
  }
  /// The least time of the next bucket.
  static constexpr std::uint64_t end(std::uint32_t bucket) { return begin(bucket + 1); }
  static constexpr std::uint64_t begin(std::uint32_t bucket) {
    return bucket < 4 ? bucket : std::uint64_t{4 + bucket % 4} << (bucket / 4 - 1);
  }
};
static_assert(LatencyBuckets::begin(LatencyBuckets::of(1000)) <= 1000 &&
              LatencyBuckets::end(LatencyBuckets::of(1000)) > 1000);
static_assert(LatencyBuckets::of(std::uint64_t{1} << 47) == LatencyBuckets::kNumber - 4);

}  // namespace esker::pipeline::detail
