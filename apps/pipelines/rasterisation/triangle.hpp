// Triangles as the rasteriser takes them: coverage and depth of a pixel are linear functions in whole
// numbers, so that each processor finds the same.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <esker/lane.hpp>

namespace raster {

inline constexpr std::int32_t kSubpixels = 16;  // positions are whole sixteenths of a pixel

/// A corner on the screen. Its depth grows away from the viewer.
struct Corner {
  std::int32_t x, y;  // sixteenths of a pixel
  double depth;       // 0 to 1
};

/// a x + b y + c.
struct Plane {
  std::int64_t a, b, c;
  ESKER_HD constexpr std::int64_t at(std::int64_t x, std::int64_t y) const { return a * x + b * y + c; }
};

struct Triangle {
  Plane edges[3];  // a pixel whose centre is inside has no value below 0
  Plane depth;
  std::int32_t left, top, right, bottom;  // its box of pixels: right and bottom are outside
  std::uint32_t colour;
  std::uint32_t unused;

  ESKER_HD bool covers(std::int32_t x, std::int32_t y) const {
    if (x < left || x >= right || y < top || y >= bottom) return false;
    const std::int64_t px = kSubpixels * x + kSubpixels / 2, py = kSubpixels * y + kSubpixels / 2;
    return edges[0].at(px, py) >= 0 && edges[1].at(px, py) >= 0 && edges[2].at(px, py) >= 0;
  }
};

/// What is nearest at a pixel. Of equal depths the smaller colour, so that the order does not matter.
struct Nearest {
  std::int64_t depth = std::int64_t{1} << 62;
  std::uint32_t colour = 0;

  ESKER_HD void take(std::int64_t other_depth, std::uint32_t other_colour) {
    if (other_depth > depth || (other_depth == depth && other_colour >= colour)) return;
    depth = other_depth;
    colour = other_colour;
  }
};

/// Twice its area, in sixteenths of a pixel each way; above 0 where it faces the viewer.
inline std::int64_t area(const Corner& a, const Corner& b, const Corner& c) {
  return std::int64_t{b.x - a.x} * (c.y - a.y) - std::int64_t{b.y - a.y} * (c.x - a.x);
}

/// The plane through the depths of the corners, in steps of 2^-38, over pixels.
inline Plane depth_plane(const Corner& a, const Corner& b, const Corner& c) {
  const double scale = std::ldexp(1.0, 38), twice = static_cast<double>(area(a, b, c));
  const double ab = b.depth - a.depth, ac = c.depth - a.depth;
  const double dx = (ab * (c.y - a.y) - ac * (b.y - a.y)) / twice,
               dy = (ac * (b.x - a.x) - ab * (c.x - a.x)) / twice;
  const double at_origin = a.depth + dx * (kSubpixels / 2 - a.x) + dy * (kSubpixels / 2 - a.y);
  return {std::llround(dx * kSubpixels * scale), std::llround(dy * kSubpixels * scale),
          std::llround(at_origin * scale)};
}

/// Of corners with an area above 0. A pixel on an edge between two triangles belongs to one of them: an edge
/// has its pixels if it is a left one, or a level one at the top.
inline Triangle set_up(const Corner& a, const Corner& b, const Corner& c, std::uint32_t colour) {
  Triangle t{};
  const Corner* const corners[4] = {&a, &b, &c, &a};
  for (int i = 0; i < 3; ++i) {
    const Corner &from = *corners[i], &to = *corners[i + 1];
    Plane& edge = t.edges[i];
    edge.a = from.y - to.y;
    edge.b = to.x - from.x;
    edge.c = -(edge.a * from.x + edge.b * from.y);
    const bool has_its_pixels = edge.a > 0 || (edge.a == 0 && edge.b > 0);
    if (!has_its_pixels) --edge.c;
  }
  t.depth = depth_plane(a, b, c);
  t.left = std::min({a.x, b.x, c.x}) / kSubpixels;
  t.top = std::min({a.y, b.y, c.y}) / kSubpixels;
  t.right = std::max({a.x, b.x, c.x}) / kSubpixels + 1;
  t.bottom = std::max({a.y, b.y, c.y}) / kSubpixels + 1;
  t.colour = colour;
  return t;
}

}  // namespace raster
