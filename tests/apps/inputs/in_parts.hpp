// What a reader or a generator gives in all of its parts.
#pragma once

#include <esker/apps/inputs/file/part.hpp>

#include <cstdint>
#include <string>

#include "written_file.hpp"

namespace inputs::testing {

constexpr std::uint64_t kPartCounts[] = {1, 2, 3, 7, 1000};

/// The vectors read(Part), one behind the other.
auto in_parts(auto read, std::uint64_t parts) {
  auto all = read(Part{0, parts});
  for (std::uint64_t p = 1; p < parts; ++p) {
    const auto part = read(Part{p, parts});
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

/// The first error of all parts that meet one.
std::string first_reason(auto read, std::uint64_t parts) {
  for (std::uint64_t p = 0; p < parts; ++p) {
    const std::string said = reason([&] { read(Part{p, parts}); });
    if (said != "accepted") return said;
  }
  return "accepted";
}

}  // namespace inputs::testing
