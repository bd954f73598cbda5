// Micropolygons: about a pixel's quarter of a patch each, of one colour and one depth.
#pragma once

#include <cmath>
#include <cstdint>

#include <esker/lane.hpp>

#include "patch.hpp"

namespace reyes {

inline constexpr std::uint32_t kGrid = 16;  // micropolygons of a patch that is drawn, each way
inline constexpr float kLargest = 12;       // pixels that such a patch has, each way
inline constexpr std::uint32_t kMostLevels = 30;

/// What is at a pixel: {depth: 32 bits, 0: 8, red, green, blue: 8 each}. The smaller word is nearer.
using Sample = std::uint64_t;
inline constexpr Sample kNothing = ~Sample{0};

/// The patch is small enough to be drawn.
ESKER_HD inline bool is_small(const Patch& patch, const Bound& b) {
  return (b.right - b.left <= kLargest && b.bottom - b.top <= kLargest) || patch.level >= kMostLevels;
}
ESKER_HD inline bool is_seen(const Bound& b, const Screen& screen) {
  return b.right >= 0 && b.bottom >= 0 && b.left < static_cast<float>(screen.width) &&
         b.top < static_cast<float>(screen.height);
}

namespace detail {

struct ScreenPoint {
  std::int32_t x, y;  // 256 a pixel
};
ESKER_HD inline ScreenPoint on_screen(const Point& p, const Screen& screen) {
  return {static_cast<std::int32_t>(screen.x_of(p) * 256 + 65536.5f) - 65536,
          static_cast<std::int32_t>(screen.y_of(p) * 256 + 65536.5f) - 65536};
}
/// The side of the edge that the point is on, not 0: of points on it, two triangles with this edge say the
/// opposite.
ESKER_HD inline bool is_left_of(const ScreenPoint& a, const ScreenPoint& b, const ScreenPoint& p) {
  const std::int64_t dx = b.x - a.x, dy = b.y - a.y;
  const std::int64_t side = dx * (p.y - a.y) - dy * (p.x - a.x);
  return side > 0 || (side == 0 && (dy < 0 || (dy == 0 && dx > 0)));
}
ESKER_HD inline bool covers(const ScreenPoint& a, const ScreenPoint& b, const ScreenPoint& c,
                            const ScreenPoint& p) {
  const bool first = is_left_of(a, b, p);
  return first == is_left_of(b, c, p) && first == is_left_of(c, a, p);
}
ESKER_HD inline std::int32_t least(std::int32_t a, std::int32_t b) { return a < b ? a : b; }
ESKER_HD inline std::int32_t most(std::int32_t a, std::int32_t b) { return a > b ? a : b; }

}  // namespace detail

/// Lambert's law, for light from the viewer's upper left; both sides are lit.
ESKER_HD inline std::uint32_t shaded(std::uint32_t colour, const Point& p, const Point& q, const Point& r,
                                     const Point& s) {
  const Point a{r.x - p.x, r.y - p.y, r.z - p.z}, b{s.x - q.x, s.y - q.y, s.z - q.z};
  const Point n{a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
  const float length = std::sqrt(n.x * n.x + n.y * n.y + n.z * n.z);
  const float cosine =
      length > 0 ? absolute(-0.4f * n.x + 0.6f * n.y - 0.7f * n.z) / (1.005f * length) : 0.0f;
  const float light = 0.15f + 0.85f * cosine;
  std::uint32_t lit = 0;
  for (int shift = 16; shift >= 0; shift -= 8) {
    const auto part = static_cast<std::uint32_t>(static_cast<float>(colour >> shift & 255) * light);
    lit |= (part > 255 ? 255 : part) << shift;
  }
  return lit;
}

/// Micropolygon (i, j) of a patch: calls at_pixel(index, sample) for each pixel whose centre is in it.
template <class AtPixel>
ESKER_HD void draw_micropolygon(const Patch& patch, std::uint32_t i, std::uint32_t j, const Screen& screen,
                                const AtPixel& at_pixel) {
  using detail::ScreenPoint;
  const float step = 1.0f / kGrid, u = static_cast<float>(i) * step, v = static_cast<float>(j) * step,
              next_u = static_cast<float>(i + 1) * step, next_v = static_cast<float>(j + 1) * step;
  const Point a = point_at(patch, u, v), b = point_at(patch, next_u, v), c = point_at(patch, next_u, next_v),
              d = point_at(patch, u, next_v);
  const ScreenPoint sa = detail::on_screen(a, screen), sb = detail::on_screen(b, screen),
                    sc = detail::on_screen(c, screen), sd = detail::on_screen(d, screen);
  using detail::least;
  using detail::most;
  // The first and the last centre, at 128 of 256, that can be inside.
  const std::int32_t left = most(least(least(sa.x, sb.x), least(sc.x, sd.x)) - 128 + 255, 0) >> 8,
                     top = most(least(least(sa.y, sb.y), least(sc.y, sd.y)) - 128 + 255, 0) >> 8,
                     right = least(most(most(sa.x, sb.x), most(sc.x, sd.x)) - 128,
                                   static_cast<std::int32_t>(screen.width) * 256 - 128) >>
                             8,
                     bottom = least(most(most(sa.y, sb.y), most(sc.y, sd.y)) - 128,
                                    static_cast<std::int32_t>(screen.height) * 256 - 128) >>
                              8;
  if (left > right || top > bottom) return;
  const float depth = (a.z + b.z + c.z + d.z) * 0.25f;
  const Sample sample = static_cast<Sample>(depth * 1048576.0f) << 32 | shaded(patch.colour, a, b, c, d);
  for (std::int32_t y = top; y <= bottom; ++y) {
    for (std::int32_t x = left; x <= right; ++x) {
      const ScreenPoint centre{x * 256 + 128, y * 256 + 128};
      if (detail::covers(sa, sb, sc, centre) || detail::covers(sa, sc, sd, centre))
        at_pixel(static_cast<std::size_t>(y) * screen.width + static_cast<std::size_t>(x), sample);
    }
  }
}

}  // namespace reyes
