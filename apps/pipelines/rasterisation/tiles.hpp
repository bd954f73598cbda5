// Pictures in square tiles, and which triangles are in which.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <esker/lane.hpp>

#include "scene.hpp"
#include "triangle.hpp"

namespace raster {

/// Tiles are numbered over all pictures, row by row.
struct Tiles {
  std::uint32_t width, height, side;

  struct Box {
    std::uint32_t left, top, width, height;
  };
  ESKER_HD constexpr std::uint32_t columns() const { return (width + side - 1) / side; }
  ESKER_HD constexpr std::uint32_t of_picture() const { return columns() * ((height + side - 1) / side); }
  ESKER_HD constexpr Box box(std::uint64_t tile) const {
    const auto in_picture = static_cast<std::uint32_t>(tile % of_picture());
    const std::uint32_t left = in_picture % columns() * side, top = in_picture / columns() * side;
    return {left, top, width - left < side ? width - left : side, height - top < side ? height - top : side};
  }
};

/// For each tile of a picture its triangles.
inline std::vector<std::vector<Triangle>> binned(const Tiles& tiles,
                                                 const std::vector<Primitive>& primitives) {
  std::vector<std::vector<Triangle>> bins(tiles.of_picture());
  const auto tile_at = [&](std::int32_t pixel, std::uint32_t size) {
    return static_cast<std::uint32_t>(std::clamp(pixel, 0, static_cast<std::int32_t>(size) - 1)) / tiles.side;
  };
  for (const Primitive& p : primitives) {
    const Triangle t = set_up(p.a, p.b, p.c, p.colour);
    if (t.right <= 0 || t.bottom <= 0 || t.left >= static_cast<std::int32_t>(tiles.width) ||
        t.top >= static_cast<std::int32_t>(tiles.height))
      continue;
    for (std::uint32_t y = tile_at(t.top, tiles.height); y <= tile_at(t.bottom - 1, tiles.height); ++y) {
      for (std::uint32_t x = tile_at(t.left, tiles.width); x <= tile_at(t.right - 1, tiles.width); ++x)
        bins[y * tiles.columns() + x].push_back(t);
    }
  }
  return bins;
}

/// The most triangles of a tile in all pictures.
inline std::uint32_t most_triangles(const Scene& scene, const Tiles& tiles) {
  std::size_t most = 1;
  for (std::uint32_t picture = 0; picture < scene.pictures; ++picture) {
    for (const auto& bin : binned(tiles, primitives_of(scene, picture))) most = std::max(most, bin.size());
  }
  return static_cast<std::uint32_t>(most);
}

}  // namespace raster
