// A grid of whole numbers and a stencil over it: what every scheme computes, cell by cell.
#pragma once

#include <cstdint>

#include <esker/lane.hpp>
#include <esker/pipeline.hpp>

namespace stencil {

using esker::pipeline::Box;
using esker::pipeline::Cell;
using esker::pipeline::Extent;
using esker::pipeline::Halo;
using esker::pipeline::Offset;
using esker::pipeline::RegionGrid;

/// The cells that a stencil reads: 5 or 9 of a plane, or 7 in space. The first is the cell itself.
struct Shape {
  static constexpr std::uint32_t kMost = 9;
  std::uint32_t n;
  Offset offsets[kMost];

  static constexpr Shape star(std::uint32_t dimensions) {
    return {1 + 2 * dimensions, {{}, {-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}}};
  }
  static constexpr Shape square() {
    return {
        9,
        {{}, {-1, -1, 0}, {0, -1, 0}, {1, -1, 0}, {-1, 0, 0}, {1, 0, 0}, {-1, 1, 0}, {0, 1, 0}, {1, 1, 0}}};
  }
  constexpr Halo halo() const { return Halo::around({offsets, n}); }
};

struct Problem {
  Extent cells;
  Shape shape;
  std::uint64_t seed;

  ESKER_HD std::uint64_t index_of(const Cell& c) const {
    return (std::uint64_t{c.z} * cells.y + c.y) * cells.x + c.x;
  }
  /// What the host makes for a cell: a whole number below 256, so that sums are exact on every processor.
  float make(std::uint64_t cell) const {
    std::uint64_t x = (cell + seed) * 0x9e3779b97f4a7c15u;
    x ^= x >> 32;
    return static_cast<float>(x * 0xd6e8feb86659fd93u >> 56);
  }
  /// Four times the first value, and the others. `value(i)` is that of offset i, 0 outside of the grid.
  template <class Value>
  ESKER_HD static float apply(std::uint32_t n, const Value& value) {
    float sum = 4 * value(0u);
    for (std::uint32_t i = 1; i < n; ++i) sum += value(i);
    return sum;
  }
};

}  // namespace stencil
