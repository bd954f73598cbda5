// The stage on the device: the pixels of a tile.
#pragma once

#include <cstdint>

#include <esker/lane.hpp>

#include "tiles.hpp"
#include "triangle.hpp"

namespace raster {

inline constexpr std::uint32_t kBackground = 0x202030;

/// The triangles of a tile, whose number is the frame's tag, to its pixels, row by row. A lane keeps the
/// depth of its pixel in a register.
///
/// Contract Frame f has slot f modulo `slots` of `near`, in the device's memory: the triangles cross the bus
///          once.
struct Rasterise {
  Tiles tiles;
  Triangle* near;
  std::uint32_t slots, most_triangles;

  template <class Stage, class In, class Out>
  ESKER_HD void operator()(Stage& stage, const In& in, Out& out) const {
    using Word = std::uint64_t;
    constexpr std::uint32_t kPixels = 4;
    constexpr std::uint32_t kWords = sizeof(Triangle) / sizeof(Word);
    Triangle* const triangles = near + in.number % slots * most_triangles;
    const Word* const from = reinterpret_cast<const Word*>(in.data);
    Word* const to = reinterpret_cast<Word*>(triangles);
    for (std::uint32_t i = stage.lane(); i < in.count * kWords; i += stage.lanes()) to[i] = from[i];
    stage.sync();
    const Tiles::Box box = tiles.box(in.tag);
    const std::uint32_t n = box.width * box.height;
    // A triangle is read once for several pixels of a lane.
    for (std::uint32_t first = stage.lane(); first < n; first += kPixels * stage.lanes()) {
      Nearest nearest[kPixels];
      std::int32_t x[kPixels], y[kPixels];
      for (std::uint32_t k = 0; k < kPixels; ++k) {
        const std::uint32_t i = first + k * stage.lanes();
        nearest[k].colour = kBackground;
        x[k] = static_cast<std::int32_t>(box.left + i % box.width);
        y[k] = static_cast<std::int32_t>(box.top + i / box.width);
      }
      for (std::uint32_t t = 0; t < in.count; ++t) {
        const Triangle triangle = triangles[t];
        for (std::uint32_t k = 0; k < kPixels; ++k) {
          if (triangle.covers(x[k], y[k])) nearest[k].take(triangle.depth.at(x[k], y[k]), triangle.colour);
        }
      }
      for (std::uint32_t k = 0; k < kPixels; ++k) {
        if (first + k * stage.lanes() < n) out[first + k * stage.lanes()] = nearest[k].colour;
      }
    }
    out.count = box.width * box.height;
  }
};
static_assert(sizeof(Triangle) % sizeof(std::uint64_t) == 0);

}  // namespace raster
