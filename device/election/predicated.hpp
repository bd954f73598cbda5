// Election per group with software predication (thesis, Table 5-1b).
#pragma once

#include <cstdint>
#include <esker/device/election/together.hpp>

namespace esker {

/// Contract. Every live lane of the group calls it the same number of times; those that are not active
/// send nothing.
struct Predicated {
  bool active = true;

  template <std::uint32_t Words, class S>
  ESKER_HD void send(GroupLane& lane, S& sink, std::uint32_t command, const std::uint64_t (&words)[Words]) {
    auto group = lane.group();
    detail::send_together(lane, group, sink, command, words, active);
  }
};

}  // namespace esker
