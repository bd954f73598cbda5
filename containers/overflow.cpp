// What a full container says.
#include <esker/containers/overflow.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace esker::containers {

std::uint64_t entries_needed(const Overflow& overflow, double lost_keys) {
  // The estimate is right within 6.5 %, once in three.
  const double most = std::min(static_cast<double>(overflow.operations), 1.2 * lost_keys + 1);
  const std::uint64_t made_for = overflow.made_for;
  return std::max(overflow.held + static_cast<std::uint64_t>(most),
                  made_for + made_for / 4 + 1);  // where hashes are not random
}

std::string message_of(const char* container, const char* name, const Overflow& overflow) {
  return fmt::format(
      "{} '{}' is full: it was made for {} entries, holds {}, and {} operations found no room for their key; "
      "make it for {} entries or more",
      container, name, overflow.made_for, overflow.held, overflow.operations, overflow.needed);
}

std::string message_of_bag(const char* name, std::uint32_t pe, std::uint64_t came, std::uint64_t capacity) {
  return fmt::format(
      "bag '{}' is full: PE {} was sent {} elements and has room for {}; make it for {} elements of each "
      "PE or more",
      name, pe, came, capacity, came);
}

}  // namespace esker::containers
