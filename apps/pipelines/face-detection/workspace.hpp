// The pictures that are under way on the device, and what their bands lack (HiWayLib, section 3.2: references
// to what is ready, and counters of what is not).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <esker/device.hpp>
#include <esker/lane.hpp>

#include "cascade.hpp"
#include "pyramid.hpp"
#include "windows.hpp"

namespace faces {

/// A band of the picture in a slot that can be made: nothing that the step reads is missing.
struct Band {
  std::uint16_t slot, level;
  std::uint32_t number;
};

/// In the device's memory: pictures that are under way, each in a slot.
///
/// State    A slot is as WorkspaceMemory::reset() leaves it -> its picture's bands arrive -> all windows are
/// decided,
///          and the slot is as before.
/// Protocol `missing` of a step's band counts the bands that it reads and that are not there. Whoever brings
/// it to
///          0 sets it back, and hands the band on. `pending` counts bands to code, bands to scan, and windows
///          that passed a stage and wait for the next one. Whoever brings it to 0 sets it back, and says that
///          the picture is done.
/// Ordering [band] pixels and codes of a band are written before missing is counted down, and read after it
/// is 0.
///          [done] all reads and all emit() of a picture come before pending is 0: in the topic of what was
///          found the picture's end is behind its windows.
struct Workspace {
  using Count = esker::DeviceAtomic<std::uint32_t>;
  const Pyramid* pyramid;
  const Cascade* cascade;
  std::uint8_t* pixels;  // Pyramid::n_pixels a slot, and as many codes
  std::uint8_t* codes;
  Count* missing;  // kSteps times Pyramid::n_bands a slot
  Count* pending;  // one a slot

  ESKER_HD const Level& level(std::uint32_t number) const { return pyramid->levels[number]; }
  ESKER_HD std::uint8_t* pixels_of(std::uint32_t slot, std::uint32_t number) const {
    return pixels + std::size_t{slot} * pyramid->n_pixels + level(number).first_pixel;
  }
  ESKER_HD std::uint8_t* codes_of(std::uint32_t slot, std::uint32_t number) const {
    return codes + std::size_t{slot} * pyramid->n_pixels + level(number).first_pixel;
  }
  ESKER_HD Count& missing_of(Step step, std::uint32_t slot, std::uint32_t l, std::uint32_t band) const {
    const std::uint32_t row = slot * kSteps + static_cast<std::uint32_t>(step);
    return missing[std::size_t{row} * pyramid->n_bands + level(l).first_band + band];
  }
  ESKER_HD bool passes(std::uint32_t stage, const Window& w) const {
    const std::uint32_t width = level(w.level).width;
    return cascade->passes(stage, codes_of(w.slot, w.level) + std::size_t{w.y} * width + w.x, width);
  }

  /// Rows of what the step reads are there. All lanes of the team call, after a sync() that follows their
  /// writes.
  template <class Stage, class To>
  ESKER_HD void arrive(Stage& stage, Step step, std::uint32_t slot, std::uint32_t l, const Rows& rows,
                       const To& to) const {
    const Rows bands = pyramid->bands_of(pyramid->outputs_of(step, l, rows));
    for (std::uint32_t band = bands.first + stage.lane(); band < bands.end; band += stage.lanes()) {
      Count& count = missing_of(step, slot, l, band);
      if (count.fetch_add_acq_rel(~0u) != 1) continue;  // [band]
      count.store_relaxed(pyramid->needs_of(step, l, band));
      stage.emit(to, Band{static_cast<std::uint16_t>(slot), static_cast<std::uint16_t>(l), band});
    }
  }
  /// One lane: something that was pending is not any more.
  template <class Stage, class To>
  ESKER_HD void finish(Stage& stage, std::uint32_t slot, const To& found) const {
    if (pending[slot].fetch_add_acq_rel(~0u) != 1) return;  // [done]
    pending[slot].store_relaxed(pyramid->bands_to_do());
    stage.emit(found, Window{static_cast<std::uint16_t>(slot), Window::kDone, 0, 0});
  }
};

/// Owns what a Workspace names.
///
/// Errors. Error{kOutOfMemory}.
class WorkspaceMemory {
 public:
  enum class Kind { kDevice, kManaged };

  WorkspaceMemory(const esker::Device& device, const Pyramid& pyramid, const Cascade& cascade,
                  std::uint32_t slots, Kind kind = Kind::kDevice)
      : device_{device},
        host_pyramid_{pyramid},
        slots_{slots},
        pyramid_{device.memory<Pyramid>(1)},
        cascade_{device.memory<Cascade>(1)},
        missing_{device.memory<Workspace::Count>(std::size_t{slots} * kSteps * pyramid.n_bands)},
        pending_{device.memory<Workspace::Count>(slots)} {
    const std::size_t bytes = std::size_t{slots} * pyramid.n_pixels;
    if (kind == Kind::kManaged) {
      managed_pixels_ = device.managed<std::uint8_t>(bytes, {"pixels"});
      managed_codes_ = device.managed<std::uint8_t>(bytes, {"codes"});
    } else {
      pixels_ = device.memory<std::uint8_t>(bytes, {"pixels"});
      codes_ = device.memory<std::uint8_t>(bytes, {"codes"});
    }
    device.copy(pyramid_.data(), &pyramid, sizeof(Pyramid));
    device.copy(cascade_.data(), &cascade, sizeof(Cascade));
    reset();
  }
  /// Valid as long as this.
  Workspace view() const {
    const bool is_managed = managed_pixels_.data() != nullptr;
    return {pyramid_.data(),
            cascade_.data(),
            is_managed ? managed_pixels_.data() : pixels_.data(),
            is_managed ? managed_codes_.data() : codes_.data(),
            missing_.data(),
            pending_.data()};
  }
  std::uint32_t slots() const { return slots_; }
  /// No picture has begun. Nothing may use the views meanwhile.
  void reset() {
    const Pyramid& p = host_pyramid_;
    std::vector<std::uint32_t> missing(missing_.size()), pending(slots_, p.bands_to_do());
    for (std::uint32_t row = 0; row < slots_ * kSteps; ++row) {
      const auto step = static_cast<Step>(row % kSteps);
      for (std::uint32_t l = step == Step::kScale ? 1 : 0; l < p.n_levels; ++l) {
        const Rows bands = p.bands_of({0, p.height_of(step, l)});
        for (std::uint32_t band = 0; band < bands.end; ++band)
          missing[std::size_t{row} * p.n_bands + p.levels[l].first_band + band] = p.needs_of(step, l, band);
      }
    }
    device_.copy(missing_.data(), missing.data(), missing_.size_bytes());
    device_.copy(pending_.data(), pending.data(), pending_.size_bytes());
  }

 private:
  const esker::Device& device_;
  const Pyramid host_pyramid_;
  const std::uint32_t slots_;
  esker::DeviceArray<Pyramid> pyramid_;
  esker::DeviceArray<Cascade> cascade_;
  esker::DeviceArray<Workspace::Count> missing_, pending_;
  esker::DeviceArray<std::uint8_t> pixels_, codes_;
  esker::ManagedArray<std::uint8_t> managed_pixels_, managed_codes_;
};

}  // namespace faces
