// Stage 4 begins: frames that have arrived go to whatever applies them, and come back applied.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include <esker/net/arrival.hpp>
#include <esker/net/frame_applier.hpp>

namespace esker {

/// Contract. The network's owner calls. Frames are handed out, and come back by take_applied(), in the order
///           in which they came.
/// Errors.   What the applier throws; the frame that it threw for never comes back.
class Dispatch {
 public:
  /// Messages may touch offsets below `heap_bytes`.
  Dispatch(FrameApplier& applier, const std::atomic<std::uint64_t>& heap_bytes)
      : applier_{&applier}, heap_bytes_{heap_bytes} {}

  /// Before the first frame.
  void set_applier(FrameApplier& applier) { applier_ = &applier; }

  void apply(const Arrival& arrival);
  /// Hands out what the applier had no space for. True if it took one.
  bool step();
  std::optional<Arrival> take_applied();
  bool is_empty() const { return jobs_.empty(); }

 private:
  struct Job {
    ApplyJob job;
    Arrival arrival;
    bool handed_out = false;
  };

  FrameApplier* applier_;
  const std::atomic<std::uint64_t>& heap_bytes_;
  std::deque<std::unique_ptr<Job>> jobs_;  // oldest first
  std::vector<std::unique_ptr<Job>> free_;
};

}  // namespace esker
