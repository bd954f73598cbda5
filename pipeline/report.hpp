// What a run of a pipeline did: where its time went, and what waited for what.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <esker/pipeline/node.hpp>
#include <esker/pipeline/options.hpp>

namespace esker::pipeline {

/// Times of frames from their source to the end of the last stage, which is one of the host.
struct ESKER_API Latency {
  struct Bucket {
    std::chrono::nanoseconds up_to{};
    std::uint64_t frames = 0;
  };
  std::uint64_t frames = 0;  // 0: not known
  std::chrono::nanoseconds max{};
  std::vector<Bucket> buckets;  // without empty ones
  /// The time within which so large a part of the frames were through: the upper end of its bucket, which is
  /// up to a quarter above, and never above `max`.
  std::chrono::nanoseconds quantile(double part) const;
};

struct ESKER_API Report {
  struct Stage {
    std::string name;
    StageKind kind = StageKind::kFrames;
    Side side = Side::kHost;
    std::string on;                  // "host", "device", or of several "device 1"
    std::uint32_t teams = 0;         // to begin with
    std::uint32_t teams_at_end = 0;  // others, where Options::balance moves them
    std::vector<std::string> inputs, outputs;
    std::uint64_t frames = 0;   // that it has taken; of a source: calls
    std::uint64_t items = 0;    // in them
    std::uint64_t skipped = 0;  // of the frames: marked as failed by an earlier stage
    std::chrono::nanoseconds busy{}, starved{}, blocked{};  // sums over teams, of different times
    // The cause: `starved` by the input that came next, `blocked` by the output that had no room.
    std::vector<std::chrono::nanoseconds> starved_of, blocked_by;
    Latency latency;
  };
  struct Topic {
    std::string name;
    Crossing crossing = Crossing::kDirect;
    bool crosses = false;
    std::uint64_t frames = 0;       // that were published, or about to be
    std::uint64_t dropped = 0;      // WhenFull::kDropOldest
    std::uint64_t lost = 0;         // of a run that was ended: that a subscriber has not done
    std::uint32_t slots = 0;        // of a ring
    std::uint64_t frame_bytes = 0;  // of a full frame
    std::uint64_t bytes = 0;        // in its frames; 0: not known, since each subscriber has other inputs too
    // Frames that were published and that a subscriber had not freed, in samples of the monitor's.
    std::uint64_t samples = 0;  // 0: the run was too short for one
    double fill_mean = 0;
    std::uint64_t fill_highest = 0;
    std::uint64_t capacity = 0;  // of frames: its slots, and with Crossing::kBatched those of both rings
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
