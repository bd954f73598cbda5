// Division of consecutive elements.
#include "part.hpp"

#include <fmt/format.h>
#include <esker/error.hpp>

#include "../random.hpp"  // Wide

namespace inputs {
Range range_of(std::uint64_t total, Part part) {
  if (part.index >= part.count) {
    esker::misuse(fmt::format("part {} of {}: parts count from 0", part.index, part.count));
  }
  const auto start = [&](std::uint64_t p) {
    return static_cast<std::uint64_t>(static_cast<Wide>(total) * p / part.count);
  };
  return {start(part.index), start(part.index + 1)};
}

std::uint64_t part_of(std::uint64_t element, std::uint64_t total, std::uint64_t count) {
  // The largest p with floor(total p / count) <= element.
  return static_cast<std::uint64_t>((static_cast<Wide>(element + 1) * count - 1) / total);
}

}  // namespace inputs
