// What a run of a pipeline did: where its time went, and what waited for what.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <esker/pipeline/node.hpp>
#include <esker/pipeline/options.hpp>

namespace esker::pipeline {

struct ESKER_API Report {
  struct Stage {
    std::string name;
    StageKind kind = StageKind::kFrames;
    Side side = Side::kHost;
    std::uint32_t teams = 0;         // to begin with
    std::uint32_t teams_at_end = 0;  // others, where Options::balance moves them
    std::vector<std::string> inputs, outputs;
    std::uint64_t frames = 0;   // that it has taken; of a source: calls
    std::uint64_t items = 0;    // in them
    std::uint64_t skipped = 0;  // of the frames: marked as failed by an earlier stage
    std::chrono::nanoseconds busy{}, starved{}, blocked{};  // sums over teams: blocked is a part of busy
    std::vector<std::uint64_t> latencies;  // of a last stage on the host: frames by time, bucket b is 2^b ns
    /// The time within which so large a part of the frames went from their source to the end of this stage,
    /// rounded up to a power of two. 0: not known.
    std::chrono::nanoseconds latency(double part) const;
  };
  struct Topic {
    std::string name;
    Crossing crossing = Crossing::kDirect;
    bool crosses = false;
    std::uint64_t frames = 0;   // that were published, or about to be
    std::uint64_t dropped = 0;  // WhenFull::kDropOldest
    std::uint64_t lost = 0;     // of a run that was ended: that a subscriber has not done
    std::uint32_t slots = 0;
  };
  std::chrono::nanoseconds time{};  // from start() to the end
  std::uint64_t failed_frames = 0;
  std::uint64_t frame_memory_bytes = 0;
  std::vector<Stage> stages;
  std::vector<Topic> topics;

  /// A line a stage and a topic.
  std::string text() const;
  /// One JSON object (docs/reference/json.md), for scripts/pipeline_report.py.
  std::string json() const;
};

}  // namespace esker::pipeline
