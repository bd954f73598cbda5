// Part p of n: how work and files are divided among processes.
#pragma once

#include <cstdint>

namespace inputs {

/// index < count, or every function that takes it aborts: it is a misuse. All of it where none is named.
struct Part {
  std::uint64_t index = 0;
  std::uint64_t count = 1;
};

/// A part of a part: all parts of all of them are parts of the whole, each once.
constexpr Part nested(Part part, Part inner) {
  return {part.index * inner.count + inner.index, part.count * inner.count};
}

/// Half open: [begin, end).
struct Range {
  std::uint64_t begin;
  std::uint64_t end;

  std::uint64_t size() const { return end - begin; }
};

/// The elements of `total` that belong to a part: consecutive, each element in one part, sizes that differ
/// by one at most.
Range range_of(std::uint64_t total, Part part);

/// The part of `count` that holds `element`, as range_of() divides `total`. Requires element < total.
std::uint64_t part_of(std::uint64_t element, std::uint64_t total, std::uint64_t count);

}  // namespace inputs
