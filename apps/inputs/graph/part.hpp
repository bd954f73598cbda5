// Part p of n: how work and files are divided among processes.
#pragma once

#include <cstdint>

namespace graph {

/// index < count.
struct Part {
  std::uint64_t index = 0;
  std::uint64_t count = 1;
};

/// [begin, end)
struct Range {
  std::uint64_t begin;
  std::uint64_t end;

  std::uint64_t size() const { return end - begin; }
};

/// The elements of `total` that belong to a part: consecutive, each element in one part, sizes that differ
/// by one at most. A part that breaks its contract is misuse, as it is for every function that takes one.
Range range_of(std::uint64_t total, Part part);

/// The part of `count` that holds `element`, as range_of() divides `total`. Requires element < total.
std::uint64_t part_of(std::uint64_t element, std::uint64_t total, std::uint64_t count);

}  // namespace graph
