// Election per lane: every message is a package. The baseline (thesis, Figure 5-2a).
#pragma once

#include <cstdint>
#include <esker/device/packing.hpp>

namespace esker {

/// Contract. Any lane, any branch; a plain Lane will do.
struct PerLane {
  template <std::uint32_t Words, class AnyLane, class S>
  ESKER_HD void send(AnyLane& lane, S& sink, std::uint32_t command, const std::uint64_t (&words)[Words]) {
    static_assert(Sink<S>);
    const std::uint64_t ticket = sink.reserve(1);
    // Publishing inside the loop: in a wave that runs in lock step the next lane may wait for a slot
    // that becomes empty only after this lane's package.
    for (bool sent = false; !sent;) {
      if (sink.was_empty(ticket)) {
        for (std::uint32_t r = 0; r < Words; ++r) sink.row(ticket, Words, r)[0] = words[r];
        sink.publish(ticket, command, Words, 1);
        sent = true;
      } else {
        sink.pause(lane);
      }
    }
  }
};

}  // namespace esker
