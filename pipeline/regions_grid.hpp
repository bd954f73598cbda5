// Grids of one to three dimensions that are cut into regions, and which regions a stencil reads.
#pragma once

#include <cstdint>
#include <span>

#include <esker/device/platform.hpp>

namespace esker::pipeline {

/// A place in a grid, or of a region among the regions.
struct Cell {
  std::uint32_t x = 0, y = 0, z = 0;
  friend bool operator==(const Cell&, const Cell&) = default;
};
/// Cells along each dimension. A grid of fewer than three has 1 in the others.
struct Extent {
  std::uint32_t x = 1, y = 1, z = 1;
  ESKER_HD constexpr std::uint64_t volume() const { return std::uint64_t{x} * y * z; }
  friend bool operator==(const Extent&, const Extent&) = default;
};
struct Offset {
  std::int32_t x = 0, y = 0, z = 0;
};

/// What a stencil reads for one cell: all from `low` to `high` around it, both included. Low may be positive,
/// and high negative.
struct Halo {
  Offset low, high;

  /// The box around these offsets, of which there is one at least.
  static constexpr Halo around(std::span<const Offset> offsets) {
    Halo halo{offsets[0], offsets[0]};
    for (const Offset& o : offsets) {
      halo.low = {o.x < halo.low.x ? o.x : halo.low.x, o.y < halo.low.y ? o.y : halo.low.y,
                  o.z < halo.low.z ? o.z : halo.low.z};
      halo.high = {o.x > halo.high.x ? o.x : halo.high.x, o.y > halo.high.y ? o.y : halo.high.y,
                   o.z > halo.high.z ? o.z : halo.high.z};
    }
    return halo;
  }
};

/// Cells or regions: those from `first` on, `size` along each dimension. Empty where a size is 0.
struct Box {
  Cell first;
  Extent size;

  ESKER_HD constexpr std::uint32_t count() const { return static_cast<std::uint32_t>(size.volume()); }
  /// Number i of them, x first.
  ESKER_HD constexpr Cell at(std::uint32_t i) const {
    return {first.x + i % size.x, first.y + i / size.x % size.y, first.z + i / size.x / size.y};
  }
  ESKER_HD constexpr Cell last() const { return at(count() - 1); }
  /// function(cell) for number `begin`, begin + step, and so on: the lanes of a team share them by lane() and
  /// lanes(). Nothing is divided on the way.
  template <class Function>
  ESKER_HD void for_each(std::uint32_t begin, std::uint32_t step, const Function& function) const {
    const std::uint32_t n = count();
    if (begin >= n) return;
    const Cell by{step % size.x, step / size.x % size.y, step / size.x / size.y};
    Cell c{begin % size.x, begin / size.x % size.y, begin / size.x / size.y};
    for (std::uint32_t i = begin;;) {
      function(Cell{first.x + c.x, first.y + c.y, first.z + c.z});
      if (n - i <= step) return;
      i += step;
      c = {c.x + by.x, c.y + by.y, c.z + by.z};
      if (c.x >= size.x) c = {c.x - size.x, c.y + 1, c.z};
      if (c.y >= size.y) c = {c.x, c.y - size.y, c.z + 1};
    }
  }
};

/// A grid and its regions. Regions are numbered x first, then y, then z, and so are the cells in each. The
/// last region of a dimension may be cut by the border; its cells stand in memory as if it were not.
struct RegionGrid {
  Extent cells;
  Extent region;   // cells of a region, at most
  Extent regions;  // in the grid

  /// Regions are no larger than the grid. All sizes are 1 at least; a region has fewer than 2^31 cells, and
  /// the grid fewer than 2^31 regions: misuse otherwise.
  ESKER_API static RegionGrid of(const Extent& cells, const Extent& region);

  ESKER_HD std::uint32_t count() const { return static_cast<std::uint32_t>(regions.volume()); }
  /// Cells that a buffer of any region has.
  ESKER_HD std::uint32_t region_cells() const { return static_cast<std::uint32_t>(region.volume()); }

  ESKER_HD Cell place_of(std::uint32_t number) const {
    return {number % regions.x, number / regions.x % regions.y, number / regions.x / regions.y};
  }
  ESKER_HD std::uint32_t number_of(const Cell& place) const {
    return (place.z * regions.y + place.y) * regions.x + place.x;
  }
  ESKER_HD std::uint32_t region_of(const Cell& cell) const {
    return number_of({cell.x / region.x, cell.y / region.y, cell.z / region.z});
  }
  /// Where a cell stands in its region's buffer.
  ESKER_HD std::uint32_t offset_of(const Cell& cell) const {
    return offset_at({cell.x % region.x, cell.y % region.y, cell.z % region.z});
  }
  ESKER_HD std::uint32_t offset_at(const Cell& in_region) const {
    return (in_region.z * region.y + in_region.y) * region.x + in_region.x;
  }
  ESKER_HD bool contains(std::int64_t x, std::int64_t y, std::int64_t z) const {
    return x >= 0 && y >= 0 && z >= 0 && x < cells.x && y < cells.y && z < cells.z;
  }

  /// The region's cells that the grid has.
  ESKER_HD Box cells_of(std::uint32_t number) const {
    const Cell place = place_of(number);
    const Cell first{place.x * region.x, place.y * region.y, place.z * region.z};
    return {first,
            {least(region.x, cells.x - first.x), least(region.y, cells.y - first.y),
             least(region.z, cells.z - first.z)}};
  }
  /// The regions that a stencil over all cells of `number` reads. Cells outside of the grid are not read.
  ESKER_HD Box needs_of(std::uint32_t number, const Halo& halo) const {
    return regions_around(cells_of(number), halo.low, halo.high);
  }
  /// The regions of which a stencil reads cells of `number`.
  ESKER_HD Box readers_of(std::uint32_t number, const Halo& halo) const {
    return regions_around(cells_of(number), {-halo.high.x, -halo.high.y, -halo.high.z},
                          {-halo.low.x, -halo.low.y, -halo.low.z});
  }

 private:
  struct Span {
    std::uint32_t first, size;
  };
  ESKER_HD static std::uint32_t least(std::uint32_t a, std::uint32_t b) { return a < b ? a : b; }
  /// Of one dimension: the regions of the cells from first + low to last + high, as far as there are any.
  ESKER_HD static Span span_around(std::uint32_t first, std::uint32_t size, std::int32_t low,
                                   std::int32_t high, std::uint32_t of_grid, std::uint32_t of_region) {
    std::int64_t begin = std::int64_t{first} + low, last = std::int64_t{first} + size - 1 + high;
    if (begin < 0) begin = 0;
    if (last >= of_grid) last = std::int64_t{of_grid} - 1;
    if (begin > last) return {0, 0};
    const auto from = static_cast<std::uint32_t>(begin) / of_region;
    return {from, static_cast<std::uint32_t>(last) / of_region - from + 1};
  }
  ESKER_HD Box regions_around(const Box& box, const Offset& low, const Offset& high) const {
    const Span x = span_around(box.first.x, box.size.x, low.x, high.x, cells.x, region.x);
    const Span y = span_around(box.first.y, box.size.y, low.y, high.y, cells.y, region.y);
    const Span z = span_around(box.first.z, box.size.z, low.z, high.z, cells.z, region.z);
    return {{x.first, y.first, z.first}, {x.size, y.size, z.size}};
  }
};

/// Buffers that a RegionTable needs, at least, for regions that come in the order of their numbers: as many
/// as are still to be read at a time.
ESKER_API std::uint32_t buffers_in_order(const RegionGrid& grid, const Halo& halo);

namespace detail {
struct AnyNumber {};
/// `buffers`, of a table, for which it must be enough; 0 is all.
ESKER_API std::uint32_t enough_buffers(const RegionGrid& grid, const Halo& halo, std::uint32_t buffers);
}  // namespace detail

}  // namespace esker::pipeline
