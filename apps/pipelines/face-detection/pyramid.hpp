// A picture at several scales, in bands of rows: what each step makes a band from, and how it makes a pixel.
#pragma once

#include <cstdint>

#include <esker/lane.hpp>

#include "windows.hpp"

namespace faces {

/// The steps that make rows from rows.
enum class Step : std::uint32_t {
  kScale,  // pixels of a level, from those of the level above it
  kCode,   // local binary patterns of a level's pixels: a stencil of 3 x 3
  kScan,   // windows whose upper edges are in these rows, from their codes
};
inline constexpr std::uint32_t kSteps = 3;

/// Rows, or bands of rows: `end` is the first one that is not among them.
struct Rows {
  std::uint32_t first, end;
  ESKER_HD constexpr std::uint32_t count() const { return first < end ? end - first : 0; }
};

struct Level {
  std::uint32_t width, height;
  std::uint32_t first_pixel, first_band;  // among those of all levels
};

/// Levels until a window does not fit. The last band of a level may have fewer rows.
struct Pyramid {
  static constexpr std::uint32_t kMostLevels = 24;

  std::uint32_t n_levels, band_rows;
  std::uint32_t n_pixels, n_bands;  // of all levels; n_pixels is rounded up to a multiple of 16
  Level levels[kMostLevels];

  static Pyramid of(std::uint32_t width, std::uint32_t height, std::uint32_t band_rows) {
    Pyramid p{0, band_rows, 0, 0, {}};
    while (width >= kWindow && height >= kWindow) {
      p.levels[p.n_levels++] = {width, height, p.n_pixels, p.n_bands};
      p.n_pixels += width * height;
      p.n_bands += (height - 1) / band_rows + 1;
      width = width * 4 / 5;
      height = height * 4 / 5;
    }
    p.n_pixels = (p.n_pixels + 15) / 16 * 16;
    return p;
  }

  /// How many rows the step makes at a level.
  ESKER_HD constexpr std::uint32_t height_of(Step step, std::uint32_t level) const {
    return step == Step::kScan ? levels[level].height - kWindow + 1 : levels[level].height;
  }
  ESKER_HD constexpr Rows bands_of(const Rows& rows) const {
    return rows.count() == 0 ? Rows{0, 0} : Rows{rows.first / band_rows, (rows.end - 1) / band_rows + 1};
  }
  ESKER_HD constexpr Rows rows_of(Step step, std::uint32_t level, std::uint32_t band) const {
    return {band * band_rows, least((band + 1) * band_rows, height_of(step, level))};
  }
  /// What the step reads to make these rows of a level. A window's codes are all but those along its border.
  ESKER_HD constexpr Rows inputs_of(Step step, std::uint32_t level, const Rows& rows) const {
    switch (step) {
      case Step::kScale:
        return {rows.first * 5 / 4, (rows.end * 5 - 1) / 4 + 1};
      case Step::kCode:
        return {rows.first == 0 ? 0 : rows.first - 1, least(rows.end + 1, levels[level].height)};
      case Step::kScan:
        break;
    }
    return {rows.first + 1, rows.end + kWindow - 2};
  }
  /// The rows of a level that the step makes from any of these.
  ESKER_HD constexpr Rows outputs_of(Step step, std::uint32_t level, const Rows& rows) const {
    const std::uint32_t height = height_of(step, level);
    switch (step) {
      case Step::kScale:
        return {rows.first * 4 / 5, least((rows.end * 4 - 1) / 5 + 1, height)};
      case Step::kCode:
        return {rows.first == 0 ? 0 : rows.first - 1, least(rows.end + 1, height)};
      case Step::kScan:
        break;
    }
    constexpr std::uint32_t kLast = kWindow - 2;
    return {rows.first < kLast ? 0 : rows.first - kLast, least(rows.end - 1, height)};
  }
  /// The bands that a band lacks at first.
  ESKER_HD constexpr std::uint32_t needs_of(Step step, std::uint32_t level, std::uint32_t band) const {
    return bands_of(inputs_of(step, level, rows_of(step, level, band))).count();
  }

  /// Bands to code and bands to scan, of all levels.
  ESKER_HD constexpr std::uint32_t bands_to_do() const {
    std::uint32_t n = n_bands;
    for (std::uint32_t l = 0; l < n_levels; ++l) n += bands_of({0, height_of(Step::kScan, l)}).count();
    return n;
  }

 private:
  ESKER_HD static constexpr std::uint32_t least(std::uint32_t a, std::uint32_t b) { return a < b ? a : b; }
};

/// Pixel (x, y) of a level from the pixels of the level above it, which are `width` a row: the mean of the
/// 5/4 pixels, each way, that it covers. These are parts of two, in quarters: 4 and 1, 3 and 2, 2 and 3, 1
/// and 4.
ESKER_HD constexpr std::uint8_t scaled_pixel(const std::uint8_t* above, std::uint32_t width, std::uint32_t x,
                                             std::uint32_t y) {
  const std::uint8_t* const p = above + std::size_t{y * 5 / 4} * width + x * 5 / 4;
  const std::uint32_t right = 1 + x % 4, left = 5 - right, lower = 1 + y % 4, upper = 5 - lower;
  const std::uint32_t sum =
      upper * (left * p[0] + right * p[1]) + lower * (left * p[width] + right * p[width + 1]);
  return static_cast<std::uint8_t>((sum + 12) / 25);
}

/// The local binary pattern of pixel (x, y), which is not on the border: a bit for each neighbour, clockwise
/// from the upper left, that is at least as bright.
ESKER_HD constexpr std::uint8_t code_of(const std::uint8_t* pixels, std::uint32_t width, std::uint32_t x,
                                        std::uint32_t y) {
  const std::uint8_t* const p = pixels + std::size_t{y} * width + x;
  const std::uint8_t *const up = p - width, *const down = p + width;
  const std::uint8_t neighbours[8] = {up[-1], up[0], up[1], p[1], down[1], down[0], down[-1], p[-1]};
  std::uint32_t code = 0;
  for (std::uint32_t i = 0; i < 8; ++i) code |= (neighbours[i] >= p[0] ? 1u : 0u) << i;
  return static_cast<std::uint8_t>(code);
}

}  // namespace faces
