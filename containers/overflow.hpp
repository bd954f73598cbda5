// Containers that are full.
#pragma once

#include <cstdint>
#include <string>

#include <esker/device/platform.hpp>

namespace esker::containers {

/// Of a map that is full, over all PEs.
struct Overflow {
  std::uint64_t operations = 0;  // that found no room; 0: the map is not full
  std::uint64_t held = 0;        // entries that it has
  std::uint64_t made_for = 0;    // entries that allocate() was told
  std::uint64_t needed = 0;      // entries that allocate() must be told
};

/// What `needed` is to say, where about so many different keys of all PEs found no room.
ESKER_API std::uint64_t entries_needed(const Overflow& overflow, double lost_keys);

ESKER_API std::string message_of(const char* container, const char* name, const Overflow& overflow);

/// Of a bag, to which PE `pe` was sent more elements than it has room for.
ESKER_API std::string message_of_bag(const char* name, std::uint32_t pe, std::uint64_t came,
                                     std::uint64_t capacity);

}  // namespace esker::containers
