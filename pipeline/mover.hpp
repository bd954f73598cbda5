// Moves a topic's frames between its two rings by copies in bulk: the hand-shake of HiWayLib (section 3.1),
// without a thread that the GPU keeps for it.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include <esker/device/device.hpp>
#include <esker/pipeline/run_memory.hpp>
#include <esker/queue/waiting.hpp>

namespace esker::pipeline::detail {

/// Contract One host thread runs it. A frame is copied once it is published and the other ring has room, with
///          the frames after it that are next to it in memory; it frees the first ring, and is published in
///          the second, when its copy has ended. Frames stay in order.
class Mover {
 public:
  Mover(const Device& device, const RunMemory& memory, const Crossed& crossed, std::uint32_t item_bytes,
        Doorbell& bell);

  /// Until the topic has ended, or the run is over.
  void run();

 private:
  struct Copy {
    Event event;
    std::uint64_t first, n;
  };
  bool start_copies();
  bool end_copies();
  void copy(std::uint64_t first, std::uint64_t n);
  void publish(std::uint64_t frame);

  const Device device_;
  const RunView& run_;
  const TopicView from_, to_;  // device memory is only copied
  const bool to_device_;
  const std::uint32_t subscription_;  // its own, in the ring that it takes from
  const std::uint32_t item_bytes_;
  Doorbell& bell_;
  const Stream stream_;
  PinnedArray<FrameWords> staged_;  // to_device: what the GPU's ring gets as words
  PinnedArray<PolledWord> end_;
  std::deque<Copy> under_way_;
  std::vector<Event> spare_;
  std::uint64_t started_ = 0;  // frames
};

}  // namespace esker::pipeline::detail
