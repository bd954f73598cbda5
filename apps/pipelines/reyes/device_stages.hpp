// The stages on the device: patches are split until they are small, and drawn.
#pragma once

#include <cstdint>

#include <esker/lane.hpp>

#include "micropolygon.hpp"
#include "patch.hpp"

namespace reyes {

using Pixel = esker::DeviceAtomic<Sample>;

/// One lane a patch. Its halves come back to this stage.
template <class Halves, class Small>
struct Split {
  Screen screen;
  Halves halves;
  Small small;

  template <class Stage>
  ESKER_HD void operator()(Stage& stage, const Patch& patch) const {
    const Bound bound = bound_of(patch, screen);
    if (!is_seen(bound, screen)) return;
    if (is_small(patch, bound)) {
      stage.emit(small, patch);
      return;
    }
    Patch first, second;
    halve(patch, bound.along_u >= bound.along_v, first, second);
    stage.emit(halves, first);
    stage.emit(halves, second);
  }
};

/// A frame of small patches: dices and shades them, one lane a micropolygon, and draws into the picture. The
/// nearest sample stays, whatever the order.
struct Draw {
  Screen screen;
  Pixel* pixels;

  template <class Stage, class In>
  ESKER_HD void operator()(Stage& stage, const In& in) const {
    constexpr std::uint32_t kEach = kGrid * kGrid;
    for (std::uint32_t i = stage.lane(); i < in.count * kEach; i += stage.lanes()) {
      draw_micropolygon(in[i / kEach], i % kGrid, i % kEach / kGrid, screen,
                        [this](std::size_t at, Sample sample) { put(pixels[at], sample); });
    }
  }
  ESKER_HD static void put(Pixel& pixel, Sample sample) {
    Sample seen = pixel.load_relaxed();
    while (sample < seen && !pixel.compare_exchange_relaxed(seen, sample)) {
    }
  }
};

}  // namespace reyes
