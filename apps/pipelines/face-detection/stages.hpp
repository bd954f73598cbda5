// The stages on the device. A picture crosses once; what they hand on are bands and windows of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include <esker/lane.hpp>
#include <esker/pipeline.hpp>

#include "cascade.hpp"
#include "pyramid.hpp"
#include "windows.hpp"
#include "workspace.hpp"

namespace faces {

namespace pipeline = esker::pipeline;

/// Where bands and windows go. `Bands` and `Windows` are topics of them.
template <class Bands, class Windows>
struct Outputs {
  Bands scale, code, scan;
  Windows passed[Cascade::kStages];  // windows that have passed a stage; the last topic is of faces
};

/// A band of the picture, in a frame whose tag is tag_of(slot, band).
template <class Out>
struct Store {
  Workspace work;
  Out out;

  static std::uint64_t tag_of(std::uint32_t slot, std::uint32_t band) {
    return std::uint64_t{slot} << 32 | band;
  }

  template <class Stage, class In>
  ESKER_HD void operator()(Stage& stage, const In& in) const {
    const auto slot = static_cast<std::uint32_t>(in.tag >> 32), band = static_cast<std::uint32_t>(in.tag);
    const Rows rows = work.pyramid->rows_of(Step::kCode, 0, band);
    const std::uint32_t width = work.level(0).width, n = rows.count() * width;
    std::uint8_t* const to = work.pixels_of(slot, 0) + std::size_t{rows.first} * width;
    using Word = std::uint64_t;
    constexpr std::uint32_t kWord = sizeof(Word);
    const std::uint32_t n_words = rows.first * width % kWord == 0 ? n / kWord : 0;
    for (std::uint32_t i = stage.lane(); i < n_words; i += stage.lanes())
      reinterpret_cast<Word*>(to)[i] = reinterpret_cast<const Word*>(in.data)[i];
    for (std::uint32_t i = n_words * kWord + stage.lane(); i < n; i += stage.lanes()) to[i] = in[i];
    stage.sync();
    work.arrive(stage, Step::kCode, slot, 0, rows, out.code);
    if (work.pyramid->n_levels > 1) work.arrive(stage, Step::kScale, slot, 1, rows, out.scale);
  }
};

/// A band of pixels, from those of the level above it. What it makes ready comes back to this stage.
template <class Out>
struct Scale {
  Workspace work;
  Out out;

  template <class Stage, class In>
  ESKER_HD void operator()(Stage& stage, const In& in) const {
    const Band band = in[0];
    const Rows rows = work.pyramid->rows_of(Step::kCode, band.level, band.number);
    const std::uint32_t width = work.level(band.level).width, above = work.level(band.level - 1u).width;
    const std::uint8_t* const from = work.pixels_of(band.slot, band.level - 1u);
    std::uint8_t* const to = work.pixels_of(band.slot, band.level);
    const pipeline::Box box{{0, rows.first, 0}, {width, rows.count(), 1}};
    box.for_each(stage.lane(), stage.lanes(), [&](const pipeline::Cell& c) {
      to[std::size_t{c.y} * width + c.x] = scaled_pixel(from, above, c.x, c.y);
    });
    stage.sync();
    work.arrive(stage, Step::kCode, band.slot, band.level, rows, out.code);
    if (band.level + 1u < work.pyramid->n_levels)
      work.arrive(stage, Step::kScale, band.slot, band.level + 1u, rows, out.scale);
  }
};

/// A band of codes. A level's border has none.
template <class Out>
struct Code {
  Workspace work;
  Out out;

  template <class Stage, class In>
  ESKER_HD void operator()(Stage& stage, const In& in) const {
    const Band band = in[0];
    const Level& level = work.level(band.level);
    const Rows rows = work.pyramid->rows_of(Step::kCode, band.level, band.number);
    const std::uint8_t* const from = work.pixels_of(band.slot, band.level);
    std::uint8_t* const to = work.codes_of(band.slot, band.level);
    const std::uint32_t first = rows.first == 0 ? 1 : rows.first,
                        end = rows.end == level.height ? level.height - 1 : rows.end;
    const pipeline::Box box{{1, first, 0}, {level.width - 2, Rows{first, end}.count(), 1}};
    box.for_each(stage.lane(), stage.lanes(), [&](const pipeline::Cell& c) {
      to[std::size_t{c.y} * level.width + c.x] = code_of(from, level.width, c.x, c.y);
    });
    stage.sync();
    work.arrive(stage, Step::kScan, band.slot, band.level, rows, out.scan);
    if (stage.lane() == 0) work.finish(stage, band.slot, out.passed[Cascade::kStages - 1]);
  }
};

/// The cascade's first stage for a band of windows: few of them pass.
template <class Out>
struct Scan {
  Workspace work;
  Out out;

  template <class Stage, class In>
  ESKER_HD void operator()(Stage& stage, const In& in) const {
    const Band band = in[0];
    const Rows rows = work.pyramid->rows_of(Step::kScan, band.level, band.number);
    const std::uint32_t columns = work.level(band.level).width - kWindow + 1;
    const pipeline::Box box{{0, rows.first, 0}, {columns, rows.count(), 1}};
    box.for_each(stage.lane(), stage.lanes(), [&](const pipeline::Cell& c) {
      const Window window{band.slot, band.level, static_cast<std::uint16_t>(c.x),
                          static_cast<std::uint16_t>(c.y)};
      if (!work.passes(0, window)) return;
      (void)work.pending[band.slot].fetch_add_relaxed(1);  // the band itself still keeps it above 0
      stage.emit(out.passed[0], window);
    });
    stage.sync();
    if (stage.lane() == 0) work.finish(stage, band.slot, out.passed[Cascade::kStages - 1]);
  }
};

/// A later stage of the cascade, for one window.
template <class Out>
struct Classify {
  Workspace work;
  Out out;
  std::uint32_t number;

  template <class Stage>
  ESKER_HD void operator()(Stage& stage, const Window& window) const {
    constexpr std::uint32_t kLast = Cascade::kStages - 1;
    const bool passes = work.passes(number, window);
    if (passes) stage.emit(out.passed[number], window);
    if (!passes || number == kLast) work.finish(stage, window.slot, out.passed[kLast]);
  }
};

}  // namespace faces
