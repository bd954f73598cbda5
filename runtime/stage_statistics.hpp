// How long buffers take from stage to stage, and how full they are.
#pragma once

#include <string>

#include <esker/aggregator/histogram.hpp>

namespace esker {

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
std::string to_json(const StageStatistics& stages);

}  // namespace esker
