// What the detector does for a pixel and for a window, on any processor: scales, LBP codes, and a cascade
// over histograms of codes.
#pragma once

#include <cstdint>

#include <esker/lane.hpp>
#include <esker/pipeline.hpp>

namespace faces {

using esker::pipeline::Box;
using esker::pipeline::Cell;
using esker::pipeline::Extent;
using esker::pipeline::Halo;
using esker::pipeline::RegionGrid;

inline constexpr std::uint32_t kSide = 24;        // pixels of a window
inline constexpr std::uint32_t kMostLevels = 16;  // of the pyramid

/// Levels of the pyramid: each has 4/5 of the pixels of the one before, along both sides.
struct Pyramid {
  std::uint32_t n = 0;
  Extent levels[kMostLevels];

  static Pyramid of(std::uint32_t width, std::uint32_t height) {
    Pyramid p;
    for (Extent e{width, height, 1}; e.x >= kSide && e.y >= kSide && p.n < kMostLevels;
         e = {(e.x - 1) * 4 / 5 + 1, (e.y - 1) * 4 / 5 + 1, 1})
      p.levels[p.n++] = e;
    return p;
  }
  /// The pixel of the level before that stands for a pixel; and the first pixel for which up() is no less
  /// than `at`.
  ESKER_HD static std::uint32_t up(std::uint32_t at) { return (at * 5 + 3) / 4; }
  ESKER_HD static std::uint32_t first_from(std::uint32_t at) { return (at * 4 + 1) / 5; }
  /// What up() undoes: the pixel of the next level that a pixel is drawn into.
  static std::uint32_t down(std::uint32_t at) { return at * 4 / 5; }
};

ESKER_HD inline std::uint8_t grey_of(std::uint32_t red, std::uint32_t green, std::uint32_t blue) {
  return static_cast<std::uint8_t>((77 * red + 150 * green + 29 * blue) >> 8);
}

/// A bit for each of the eight pixels around one, in a circle: it is at least as bright. `around(dx, dy)`.
template <class Around>
ESKER_HD std::uint8_t code_of(std::uint8_t centre, const Around& around) {
  std::uint32_t code = 0;
  const auto add = [&](std::int32_t dx, std::int32_t dy) {
    code = code << 1 | (around(dx, dy) >= centre ? 1u : 0u);
  };
  add(-1, -1), add(0, -1), add(1, -1), add(1, 0), add(1, 1), add(0, 1), add(-1, 1), add(-1, 0);
  return static_cast<std::uint8_t>(code);
}

/// Codes of a block of a window, counted by their bins.
struct Counts {
  std::uint64_t low = 0;   // eight bits a bin: the first eight
  std::uint32_t high = 0;  // the others
  ESKER_HD void add(std::uint32_t bin) {
    if (bin < 8) {
      low += std::uint64_t{1} << 8 * bin;
    } else {
      high += 1u << 8 * (bin - 8);
    }
  }
  ESKER_HD std::uint32_t of(std::uint32_t bin) const {
    return static_cast<std::uint32_t>(bin < 8 ? low >> 8 * bin & 0xff : high >> 8 * (bin - 8) & 0xff);
  }
};

/// The histograms of a face: 3 x 3 blocks of 8 x 8 codes. A code's bin is its number of bits if these are in
/// one run around the circle (a uniform pattern), else 9.
struct Face {
  static constexpr std::uint32_t kBlocks = 9, kBlockSide = kSide / 3, kBins = 10;
  static constexpr std::uint32_t kBlockCodes = kBlockSide * kBlockSide;
  static constexpr std::uint32_t kLeastOfBlock = 28, kLeast = 400;  // of 64, and of 576

  std::uint8_t bins[256];
  std::uint8_t counts[kBlocks][kBins];
  std::uint8_t order[kBlocks];  // of the cascade: the middle first

  /// How many codes of a window the histograms have in common with the face's; 0 as soon as it is clear that
  /// it is none. `code(x, y)` of the window.
  template <class Code>
  ESKER_HD std::uint32_t match(const Code& code) const {
    std::uint32_t score = 0;
    for (std::uint32_t i = 0; i < kBlocks; ++i) {
      const std::uint32_t block = order[i], left = block % 3 * kBlockSide, top = block / 3 * kBlockSide;
      Counts found;
      for (std::uint32_t y = 0; y < kBlockSide; ++y) {
        for (std::uint32_t x = 0; x < kBlockSide; ++x) found.add(bins[code(left + x, top + y)]);
      }
      std::uint32_t common = 0;
      for (std::uint32_t b = 0; b < kBins; ++b) {
        const std::uint32_t of_face = counts[block][b], of_window = found.of(b);
        common += of_face < of_window ? of_face : of_window;
      }
      score += common;
      if (common < kLeastOfBlock || score + (kBlocks - 1 - i) * kBlockCodes < kLeast) return 0;
    }
    return score;
  }
};

/// A window that looks like a face.
struct Hit {
  std::uint32_t level, x, y, score;
  friend auto operator<=>(const Hit&, const Hit&) = default;
};

}  // namespace faces
