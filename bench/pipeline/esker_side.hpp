// The ping-pong and its chains by esker::pipeline.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "bench.hpp"
#include "words.hpp"

namespace esker::bench {

/// Lanes of a team: few for small frames, so that more of these are under way at a time.
inline std::uint32_t group_lanes_of(std::uint64_t frame_bytes) { return frame_bytes > 16384 ? 512 : 64; }
/// So many teams work on a frame: one on 64 KiB, 16 at most.
inline std::uint32_t parts_of(std::uint64_t frame_bytes) {
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(frame_bytes >> 16, 1, 16));
}
/// Frames of a ring of at most so many bytes: a power of two, 4 at least.
inline std::uint32_t slots_within(const PipelineBench& bench, std::uint64_t frame_bytes,
                                  std::uint64_t most_bytes) {
  std::uint32_t slots = 4;
  while (2 * slots <= bench.frames && 2 * slots * frame_bytes <= most_bytes) slots *= 2;
  return slots;
}
/// A source of frames, of which fill(at, quads, slot) fills those of the first round. Later ones go as they
/// are.
template <class Fill>
struct FrameSource {
  pipeline::Topic<Quad> to;
  std::uint64_t frames, slots;
  std::uint32_t quads;
  std::uint64_t* next;
  Fill fill;
  bool operator()(auto& stage) const {
    if (*next == frames) return false;
    auto frame = stage.open(to);
    if (frame.data == nullptr) return false;
    if (*next < slots) fill(frame.data, quads, *next);
    frame.count = quads;
    stage.publish(to, frame);
    ++*next;
    return true;
  }
};
template <class Fill>
FrameSource(pipeline::Topic<Quad>, std::uint64_t, std::uint64_t, std::uint32_t, std::uint64_t*, Fill)
    -> FrameSource<Fill>;

struct Chain {
  std::uint64_t frame_bytes, frames;
  std::uint32_t stages = 1;        // on the device: n
  bool returns_each_time = false;  // C(GC)n, else C(G)nC
  pipeline::Crossing crossing = pipeline::Crossing::kAuto;
  std::uint32_t parts = 1;
  std::uint32_t slots = 256;
  std::uint32_t host_threads = 1;  // that publish, and as many that look at what comes back
};
/// Doubles each frame n times. Verified. Returns seconds, from start() to the end of the run;
/// `last_to_end_us`: the time from the last frame to it.
double run_chain(const Device& device, const Chain& chain, double* last_to_end_us = nullptr,
                 std::string* report = nullptr);

}  // namespace esker::bench
