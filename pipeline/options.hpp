// What a user says about a pipeline and its topics.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include <esker/tasks/options.hpp>

namespace esker::pipeline {

using tasks::StopToken;

/// How the frames of a topic cross between host and GPUs.
enum class Crossing : std::uint32_t {
  kAuto,  // kBatched from batched_from() on and outside of loops, else kDirect (esker/pipeline/crossing.hpp)
  kDirect,   // frames are in pinned host memory, and lanes read and write them there
  kBatched,  // copy engines move frames between rings, several at a time (HiWayLib, section 3.1)
  kManaged,  // frames are in managed memory, whose pages move to the side that touches them (XeFlow): to
             // compare
};
/// "auto", "direct", "batched", "managed".
ESKER_API const char* to_string(Crossing crossing) noexcept;

/// What becomes of a frame for which a topic has no room.
enum class WhenFull : std::uint32_t {
  kWait,        // its producer waits
  kDropOldest,  // the oldest frame makes room; a worker copies what it takes, so producers wait for no more
                // than that; both sides are the host, one subscriber
};

struct TopicOptions {
  std::string name{};  // in reports and errors; "": its number
  std::uint64_t frame_bytes = 64 << 10;
  std::uint32_t frames = 64;  // that it holds: rounded up to a power of two
  // Items that are emitted one at a time wait so long for others to fill their frame; on a GPU until a call
  // of the stage's function returns after that; in a loop until the stage has nothing else to do.
  std::chrono::microseconds flush_after{200};
  Crossing crossing = Crossing::kAuto;
  WhenFull when_full = WhenFull::kWait;
};

/// A frame that a stage has marked as failed.
struct FrameError {
  std::string stage;
  std::uint64_t frame, tag;  // the frame's number in its topic, and the user's tag
  std::int32_t code;
  std::uint64_t values[2];
};

struct Options {
  StopToken stop{};
  std::uint32_t group_lanes = 256;  // of a team of the GPU
  // Threads that work for host stages at a time; 0: as many as cores. Where that is less than these stages
  // have workers, threads take turns.
  std::uint32_t host_threads = 0;
  // While it runs, teams of the GPU move from stages where many wait for input to those whose input waits. Of
  // stages with one input whose workers() are not given.
  bool balance = false;
  // Called for each fail_frame(), on a thread of the pipeline's or in wait(), one at a time; beyond 1024 that
  // wait for it they are only counted. What it throws ends the run.
  std::function<void(const FrameError&)> on_frame_error{};
  // When nothing has moved for so long, on_hang gets a report of which stage waits for which topic, and the
  // run goes on. 0: never. Empty: to standard error. What it throws ends the run.
  std::chrono::milliseconds hang_after{0};
  std::function<void(const std::string& report)> on_hang{};
  // A file for a trace of the last run, for Perfetto (docs/reference/tracing.md). Empty: none.
  std::string trace{};
};

}  // namespace esker::pipeline
