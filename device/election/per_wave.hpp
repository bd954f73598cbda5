// Election per wave: one reservation for the lanes that run together.
#pragma once

#include <cstdint>
#include <esker/device/election/together.hpp>

namespace esker {

/// Contract. Every live lane of the wave calls, converged; those that are not active send nothing.
struct PerWave {
  bool active = true;

  template <std::uint32_t Words, class S>
  ESKER_HD void send(GroupLane& lane, S& sink, std::uint32_t command, const std::uint64_t (&words)[Words]) {
    auto wave = lane.wave();
    detail::send_together(lane, wave, sink, command, words, active);
  }
};

/// Contract. Any lane, any branch: it works on whichever lanes of the wave are converged, on the CPU
/// on one at a time.
struct PerConvergedWave {
  template <std::uint32_t Words, class S>
  ESKER_HD void send(GroupLane& lane, S& sink, std::uint32_t command, const std::uint64_t (&words)[Words]) {
    auto active = lane.coalesced();
    detail::send_together(lane, active, sink, command, words, true);
  }
};

}  // namespace esker
