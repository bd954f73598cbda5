// Lazy regions for stencils (HiWayLib, section 3.2): a grid crosses between stages region by region, each
// once, whatever overlaps; a stage computes a region once all that its stencil reads has arrived.
//
//   RegionGrid, Halo    the grid, its regions, and what a stencil reads
//   RegionSource        where the grid is made: try_set(), which says who hands a region over
//   RegionTable         where it arrives: receive(), which says what can be computed
//
// A stage that makes cells calls RegionSource::view().try_set() or try_set_row(), and sends the data() of a
// region that is complete as a frame whose tag is the region's number. A stage that takes such frames calls
// RegionTable::view().receive(stage, frame.tag, frame.data, compute).
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include <esker/device/device.hpp>
#include <esker/pipeline/regions_grid.hpp>
#include <esker/pipeline/regions_memory.hpp>
#include <esker/pipeline/regions_source.hpp>
#include <esker/pipeline/regions_table.hpp>

namespace esker::pipeline {

namespace detail {

template <class T>
RegionBuffers<T> buffers_in(const RegionMemory& memory, const RegionGrid& grid) {
  return {reinterpret_cast<T*>(memory.cells()), grid.region_cells(), memory.ring(), memory.buffer_words()};
}

}  // namespace detail

/// Owns the memory of a RegionSourceView; on the host it is pinned.
///
/// Errors. Error{kOutOfMemory}.
template <class T>
class RegionSource {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  /// `buffers`: regions that are being made at a time; 0: all.
  RegionSource(const Device& device, RegionSide side, const RegionGrid& grid, std::uint32_t buffers = 0)
      : grid_{grid}, memory_{device, side, grid, 1, buffers, sizeof(T), "regions that are made"} {
    memory_.set_words(0, [&](std::uint32_t region) { return grid.cells_of(region).count(); });
    memory_.reset();
  }
  /// Valid as long as this.
  RegionSourceView<T> view() const {
    return {grid_, detail::buffers_in<T>(memory_, grid_), memory_.words(0)};
  }
  /// Nothing has been set, and it is round 0. Nothing may use the views meanwhile.
  void reset() { memory_.reset(); }

 private:
  RegionGrid grid_;
  detail::RegionMemory memory_;
};

/// Owns the memory of a RegionTableView.
///
/// Errors. Error{kConfiguration}: fewer buffers than buffers_in_order(). Error{kOutOfMemory}.
template <class T>
class RegionTable {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  /// `buffers`: regions that are there at a time, buffers_in_order() at least, for regions that come in the
  /// order of their numbers; 0: all, and in any order.
  RegionTable(const Device& device, RegionSide side, const RegionGrid& grid, const Halo& halo,
              std::uint32_t buffers = 0)
      : RegionTable{
            detail::AnyNumber{}, device, side, grid, halo, detail::enough_buffers(grid, halo, buffers)} {}
  /// Of fewer, too: then a region may wait for a buffer until the run is over.
  RegionTable(detail::AnyNumber, const Device& device, RegionSide side, const RegionGrid& grid,
              const Halo& halo, std::uint32_t buffers)
      : grid_{grid}, halo_{halo}, memory_{device, side, grid, 3, buffers, sizeof(T), "regions that arrive"} {
    memory_.set_words(0, [&](std::uint32_t target) { return grid.needs_of(target, halo).count(); });
    memory_.set_words(1, [&](std::uint32_t region) { return grid.readers_of(region, halo).count(); });
    memory_.set_words(2, [](std::uint32_t) { return RegionTableView<T>::kNobody; });
    memory_.reset();
  }
  /// Valid as long as this.
  RegionTableView<T> view() const {
    return {grid_,
            halo_,
            detail::buffers_in<T>(memory_, grid_),
            memory_.words(0),
            memory_.words(1),
            memory_.words(2),
            memory_.is_short() ? memory_.one_more_word() : nullptr};
  }
  /// Nothing has arrived, and it is round 0. Nothing may use the views meanwhile.
  void reset() { memory_.reset(); }
  /// Those that read no cell of the grid: no arrival makes them ready, and whoever wants them computes them.
  std::vector<std::uint32_t> targets_without_needs() const {
    std::vector<std::uint32_t> targets;
    for (std::uint32_t t = 0; t < grid_.count(); ++t) {
      if (grid_.needs_of(t, halo_).count() == 0) targets.push_back(t);
    }
    return targets;
  }

 private:
  RegionGrid grid_;
  Halo halo_;
  detail::RegionMemory memory_;
};

}  // namespace esker::pipeline
