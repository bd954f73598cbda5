// The verifier: a picture as a whole, triangle by triangle, with a depth buffer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "rasterise.hpp"
#include "scene.hpp"

namespace raster {

/// A pixel is inside where it is on the same side of all three edges; of pixels on an edge, the edges that go
/// up, or to the right, have theirs.
inline std::vector<std::uint32_t> serial_picture(const Scene& scene, std::uint32_t picture) {
  std::vector<std::uint32_t> colours(std::size_t{scene.width} * scene.height, kBackground);
  std::vector<std::int64_t> depths(colours.size(), std::numeric_limits<std::int64_t>::max());
  for (const Primitive& p : primitives_of(scene, picture)) {
    const Corner corners[4] = {p.a, p.b, p.c, p.a};
    const Plane plane = depth_plane(p.a, p.b, p.c);
    const auto [left, right] = std::minmax({p.a.x, p.b.x, p.c.x});
    const auto [top, bottom] = std::minmax({p.a.y, p.b.y, p.c.y});
    for (std::int32_t y = std::max(top / 16, 0);
         y <= std::min(bottom / 16, static_cast<std::int32_t>(scene.height) - 1); ++y) {
      for (std::int32_t x = std::max(left / 16, 0);
           x <= std::min(right / 16, static_cast<std::int32_t>(scene.width) - 1); ++x) {
        bool is_inside = true;
        for (int e = 0; e < 3; ++e) {
          const Corner &from = corners[e], &to = corners[e + 1];
          const std::int64_t side = std::int64_t{to.x - from.x} * (16 * y + 8 - from.y) -
                                    std::int64_t{to.y - from.y} * (16 * x + 8 - from.x);
          const bool has_pixels = to.y < from.y || (to.y == from.y && to.x > from.x);
          is_inside = is_inside && (side > 0 || (side == 0 && has_pixels));
        }
        if (!is_inside) continue;
        const std::size_t at = std::size_t(y) * scene.width + std::size_t(x);
        const std::int64_t depth = plane.a * x + plane.b * y + plane.c;
        if (depth < depths[at] || (depth == depths[at] && p.colour < colours[at])) {
          depths[at] = depth;
          colours[at] = p.colour;
        }
      }
    }
  }
  return colours;
}

}  // namespace raster
