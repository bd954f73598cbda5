// For how long a team has had nothing to do, and why.
#pragma once

#include <cstdint>

#include <esker/device/platform.hpp>

namespace esker::pipeline::detail {

ESKER_PASS_BEGIN

struct IdleTime {
  std::uint64_t since = 0;  // 0: it has something to do
  bool is_for_room = false;
  std::uint64_t starved_ns = 0, blocked_ns = 0;  // for want of input, and of room in an output

  ESKER_HD bool is_idle() const { return since != 0; }
  ESKER_HD void begin(std::uint64_t now, bool for_room) {
    since = now;
    is_for_room = for_room;
  }
  /// What it has lasted.
  ESKER_HD std::uint64_t end(std::uint64_t now) {
    const std::uint64_t ns = now - since;
    since = 0;
    (is_for_room ? blocked_ns : starved_ns) += ns;
    return ns;
  }
};

ESKER_PASS_END

}  // namespace esker::pipeline::detail
