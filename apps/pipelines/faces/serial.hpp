// The detector as plain loops over whole levels, to verify the pipeline; and how windows are grouped.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "detector.hpp"
#include "picture.hpp"

namespace faces {

/// All windows that look like a face, in order. Histograms are counted in full.
inline std::vector<Hit> detect_serially(const Picture& picture, const Face& face) {
  const Pyramid pyramid = Pyramid::of(picture.width, picture.height);
  std::vector<std::uint8_t> level(std::size_t{picture.width} * picture.height);
  for (std::size_t i = 0; i < level.size(); ++i) {
    const std::uint8_t* const p = &picture.pixels[3 * i];
    level[i] = static_cast<std::uint8_t>((p[0] * 77 + p[1] * 150 + p[2] * 29) / 256);
  }
  std::vector<Hit> hits;
  for (std::uint32_t l = 0; l < pyramid.n; ++l) {
    const std::uint32_t w = pyramid.levels[l].x, h = pyramid.levels[l].y;
    const auto pixel = [&](std::uint32_t x, std::uint32_t y) {
      return x < w && y < h ? level[std::size_t{y} * w + x] : 0;
    };
    std::vector<std::uint8_t> bins(level.size());
    for (std::uint32_t y = 0; y < h; ++y) {
      for (std::uint32_t x = 0; x < w; ++x) {
        const int circle[8] = {pixel(x - 1, y - 1), pixel(x, y - 1), pixel(x + 1, y - 1), pixel(x + 1, y),
                               pixel(x + 1, y + 1), pixel(x, y + 1), pixel(x - 1, y + 1), pixel(x - 1, y)};
        unsigned code = 0;
        for (int i = 0; i < 8; ++i) code |= (circle[i] >= pixel(x, y) ? 1u : 0u) << (7 - i);
        bins[std::size_t{y} * w + x] = face.bins[code];
      }
    }
    for (std::uint32_t y = 0; y + kSide <= h; ++y) {
      for (std::uint32_t x = 0; x + kSide <= w; ++x) {
        std::uint32_t score = 0;
        bool is_face = true;
        for (std::uint32_t block = 0; block < Face::kBlocks && is_face; ++block) {
          std::array<std::uint32_t, Face::kBins> counts{};
          const std::uint32_t left = x + block % 3 * Face::kBlockSide, top = y + block / 3 * Face::kBlockSide;
          for (std::uint32_t v = top; v < top + Face::kBlockSide; ++v) {
            for (std::uint32_t u = left; u < left + Face::kBlockSide; ++u)
              ++counts[bins[std::size_t{v} * w + u]];
          }
          std::uint32_t common = 0;
          for (std::uint32_t b = 0; b < Face::kBins; ++b)
            common += std::min<std::uint32_t>(counts[b], face.counts[block][b]);
          is_face = common >= Face::kLeastOfBlock;
          score += common;
        }
        if (is_face && score >= Face::kLeast) hits.push_back({l, x, y, score});
      }
    }
    if (l + 1 == pyramid.n) break;
    const Extent& next = pyramid.levels[l + 1];
    std::vector<std::uint8_t> scaled(next.volume());
    for (std::uint32_t y = 0; y < next.y; ++y) {
      for (std::uint32_t x = 0; x < next.x; ++x)
        scaled[std::size_t{y} * next.x + x] = pixel((5 * x + 3) / 4, (5 * y + 3) / 4);
    }
    level = std::move(scaled);
  }
  return hits;
}

/// Windows of which one covers much of the other are one face: the best of them. The best first.
inline std::vector<Rectangle> group(std::vector<Hit> hits) {
  std::sort(hits.begin(), hits.end(),
            [](const Hit& a, const Hit& b) { return a.score != b.score ? a.score > b.score : a < b; });
  std::vector<Rectangle> found;
  for (const Hit& hit : hits) {
    const Rectangle r = rectangle_of(hit.level, hit.x, hit.y);
    const bool is_known = std::any_of(found.begin(), found.end(), [&](const Rectangle& f) {
      return 2 * f.common_area(r) > std::min(f.area(), r.area());
    });
    if (!is_known) found.push_back(r);
  }
  return found;
}

/// How many of the drawn faces are among those that were found.
inline std::size_t found_of(const std::vector<Rectangle>& drawn, const std::vector<Rectangle>& found) {
  return static_cast<std::size_t>(std::count_if(drawn.begin(), drawn.end(), [&](const Rectangle& d) {
    return std::any_of(found.begin(), found.end(), [&](const Rectangle& f) { return f.is_like(d); });
  }));
}

}  // namespace faces
