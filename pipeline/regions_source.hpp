// The side that makes a grid: counts what each region lacks, and says who hands it over.
#pragma once

#include <cstdint>

#include <esker/device/atomic.hpp>
#include <esker/pipeline/regions_buffers.hpp>
#include <esker/pipeline/regions_grid.hpp>

namespace esker::pipeline {

/// Not-ready counters and the buffers of regions that are being made (HiWayLib, section 3.2). Trivially
/// copyable; on the host, or in kernels if its RegionSource is the device's.
///
/// State    A region is unset -> being set -> complete -> unset, in the next round. Rounds are numbered
///          from 0.
/// Contract Any lane, any thread. Each cell is set once a round. Of those that set a region's cells
///          exactly one learns that the region is complete: it hands data() over and calls release(),
///          after which the region's next round may be set.
/// Protocol `not_ready` counts the cells that have not been set. Whoever brings it to 0 completes the
///          region.
/// Ordering [cells] what was written to cells that are marked happens before what follows in the caller
///          that completes the region.
/// Progress Nothing waits: where no buffer is free, or it is an earlier round's turn, a call sets
///          nothing, or a part, and says so. Some region must be completed and released then, so a grid
///          that is made row by row needs buffers for a row of regions at least, and one that is made
///          plane by plane for a plane.
/// `Word` is for tests: an atomic with weaker orders.
template <class T, template <class> class Word = DeviceAtomic>
class RegionSourceView {
 public:
  enum class Set { kDone, kCompletes, kNotNow };

  RegionGrid grid;
  detail::RegionBuffers<T, Word> buffers;
  Word<std::uint32_t>* not_ready;  // one a region

  ESKER_HD Set try_set(const Cell& cell, const T& value, std::uint32_t round = 0) const {
    const std::uint32_t region = grid.region_of(cell);
    T* const to = try_open(region, round);
    if (to == nullptr) return Set::kNotNow;
    to[grid.offset_of(cell)] = value;
    return mark_ready(region, 1) ? Set::kCompletes : Set::kDone;
  }
  /// `count` cells from `first` on, along x; returns how many it has set. `completes(region)` is called for
  /// each region that this completes; it may release() it.
  template <class Completes>
  ESKER_HD std::uint32_t try_set_row(const Cell& first, const T* values, std::uint32_t count,
                                     Completes&& completes, std::uint32_t round = 0) const {
    std::uint32_t done = 0;
    while (done < count) {
      const Cell cell{first.x + done, first.y, first.z};
      const std::uint32_t region = grid.region_of(cell);
      T* const to = try_open(region, round);
      if (to == nullptr) break;
      const std::uint32_t of_region = grid.region.x - cell.x % grid.region.x;
      const std::uint32_t n = count - done < of_region ? count - done : of_region;
      T* const row = to + grid.offset_of(cell);
      for (std::uint32_t i = 0; i < n; ++i) row[i] = values[done + i];
      done += n;
      if (mark_ready(region, n)) completes(region);
    }
    return done;
  }

  /// The buffer of a region, where its cells are at RegionGrid::offset_of(), for those who write them there
  /// and then call mark_ready(). Null: not now.
  ESKER_HD T* try_open(std::uint32_t region, std::uint32_t round = 0) const {
    T* const found = buffers.find(region, round);
    return found != nullptr ? found : buffers.try_take(region, round);
  }
  /// `n` more cells of the region are written. True: that was all of it, and the caller hands it over.
  ESKER_HD bool mark_ready(std::uint32_t region, std::uint32_t n) const {
    return not_ready[region].fetch_add_acq_rel(0u - n) == n;  // [cells]
  }
  /// Of a complete region, until its release().
  ESKER_HD const T* data(std::uint32_t region) const { return buffers.find(region); }
  /// Nobody reads a complete region's data() any more.
  ESKER_HD void release(std::uint32_t region) const {
    not_ready[region].store_relaxed(grid.cells_of(region).count());
    buffers.give_back(region);
  }
};

}  // namespace esker::pipeline
