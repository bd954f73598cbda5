// How many cores this process may use.
#pragma once

#include <sched.h>

#include <cstdint>

namespace esker::detail {

/// 1 at least.
inline std::uint32_t usable_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<std::uint32_t>(CPU_COUNT(&set)) : 1;
}

}  // namespace esker::detail
