// The verifier: patch by patch, to the end of the recursion, with a plain depth buffer.
#pragma once

#include <cstdint>
#include <vector>

#include "micropolygon.hpp"
#include "patch.hpp"
#include "teapots.hpp"

namespace reyes {

inline void serial_draw(const Patch& patch, const Screen& screen, std::vector<Sample>& picture) {
  const Bound bound = bound_of(patch, screen);
  if (!is_seen(bound, screen)) return;
  if (!is_small(patch, bound)) {
    Patch first, second;
    halve(patch, bound.along_u >= bound.along_v, first, second);
    serial_draw(first, screen, picture);
    serial_draw(second, screen, picture);
    return;
  }
  for (std::uint32_t j = 0; j < kGrid; ++j) {
    for (std::uint32_t i = 0; i < kGrid; ++i) {
      draw_micropolygon(patch, i, j, screen, [&](std::size_t at, Sample sample) {
        if (sample < picture[at]) picture[at] = sample;
      });
    }
  }
}
inline std::vector<Sample> serial_picture(const Table& table) {
  std::vector<Sample> picture(std::size_t{table.screen.width} * table.screen.height, kNothing);
  for (std::uint32_t p = 0; p < table.pots; ++p) {
    for (const Patch& patch : pot(table, p)) serial_draw(patch, table.screen, picture);
  }
  return picture;
}

}  // namespace reyes
