// The points of all parts.
#pragma once

#include <esker/apps/inputs/points/points.hpp>

#include <cstdint>
#include <vector>

#include "../written_file.hpp"

namespace inputs::testing {

/// The values of all parts, one part behind the other; `read` takes (part, parts).
template <class Real>
std::vector<Real> collect_all(auto read, std::uint64_t parts) {
  std::vector<Real> values;
  for (std::uint64_t part = 0; part < parts; ++part) {
    const Points<Real> points = read(part, parts);
    values.insert(values.end(), points.values.begin(), points.values.end());
  }
  return values;
}

/// The first error of all parts that meet one.
std::string first_reason(auto read, std::uint64_t parts) {
  for (std::uint64_t part = 0; part < parts; ++part) {
    const std::string said = reason([&] { read(part, parts); });
    if (said != "accepted") return said;
  }
  return "accepted";
}

}  // namespace inputs::testing
