// Election among the members of a fine-grain barrier (thesis, Table 5-1c).
#pragma once

#include <cstdint>
#include <esker/device/election/together.hpp>
#include <esker/device/fine_grain_barrier.hpp>

namespace esker {

/// Contract. Every member of the barrier calls it, and sends; a lane that has nothing more to send
/// leaves the barrier. A whole wave of such lanes runs no further instruction.
template <std::uint32_t MaxLanes = 256>
struct FineGrain {
  FineGrainBarrier<MaxLanes>& members;

  template <std::uint32_t Words, class S>
  ESKER_HD void send(GroupLane& lane, S& sink, std::uint32_t command, const std::uint64_t (&words)[Words]) {
    detail::send_together(lane, members, sink, command, words, true);
  }
};

}  // namespace esker
