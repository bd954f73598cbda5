// A picture with faces, drawn on noise by a seed, and the detector's model of such a face.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "detector.hpp"

namespace faces {

/// In pixels of the picture.
struct Rectangle {
  std::uint32_t left, top, right, bottom;  // the last two are outside

  std::uint64_t area() const { return std::uint64_t{right - left} * (bottom - top); }
  std::uint64_t common_area(const Rectangle& o) const {
    const std::uint32_t l = std::max(left, o.left), r = std::min(right, o.right);
    const std::uint32_t t = std::max(top, o.top), b = std::min(bottom, o.bottom);
    return l < r && t < b ? std::uint64_t{r - l} * (b - t) : 0;
  }
  /// Half of what both cover together.
  bool is_like(const Rectangle& o) const { return 2 * common_area(o) > area() + o.area() - common_area(o); }
};
/// What a window of a level covers.
inline Rectangle rectangle_of(std::uint32_t level, std::uint32_t x, std::uint32_t y) {
  Rectangle r{x, y, x + kSide, y + kSide};
  for (std::uint32_t l = 0; l < level; ++l)
    r = {Pyramid::up(r.left), Pyramid::up(r.top), Pyramid::up(r.right), Pyramid::up(r.bottom)};
  return r;
}

/// A face's brightness: bright in the middle, two dark eyes, a dark mouth, and slopes everywhere, so that
/// noise changes few codes.
inline std::uint8_t face_at(std::uint32_t x, std::uint32_t y) {
  const auto cone = [&](int cx, int cy, int wide, int height, int slope) {
    const int away = std::abs(2 * static_cast<int>(x) - cx) / wide + std::abs(2 * static_cast<int>(y) - cy);
    return std::max(0, height - slope * away);
  };
  const int away = std::abs(2 * static_cast<int>(x) - 23) + std::abs(2 * static_cast<int>(y) - 23);
  const int value =
      250 - 4 * away - cone(15, 17, 1, 130, 16) - cone(33, 17, 1, 130, 16) - cone(24, 34, 2, 140, 16);
  return static_cast<std::uint8_t>(std::clamp(value, 0, 255));
}

inline Face model() {
  Face face{};
  for (std::uint32_t code = 0; code < 256; ++code) {
    const auto c = static_cast<std::uint8_t>(code);
    const bool is_uniform = std::popcount(static_cast<std::uint8_t>(c ^ std::rotl(c, 1))) <= 2;
    face.bins[code] = static_cast<std::uint8_t>(is_uniform ? std::popcount(c) : 9);
  }
  for (std::uint32_t y = 0; y < kSide; ++y) {
    for (std::uint32_t x = 0; x < kSide; ++x) {
      // What is around the face is darker than it.
      const std::uint8_t code = code_of(face_at(x, y), [&](std::int32_t dx, std::int32_t dy) {
        const std::uint32_t u = x + static_cast<std::uint32_t>(dx), v = y + static_cast<std::uint32_t>(dy);
        return u < kSide && v < kSide ? face_at(u, v) : std::uint8_t{0};
      });
      ++face.counts[y / Face::kBlockSide * 3 + x / Face::kBlockSide][face.bins[code]];
    }
  }
  const std::uint8_t order[] = {4, 1, 7, 3, 5, 0, 2, 6, 8};
  std::copy(std::begin(order), std::end(order), face.order);
  return face;
}

struct Picture {
  std::uint32_t width, height;
  std::vector<std::uint8_t> pixels;  // red, green, blue; rows from the top
  std::vector<Rectangle> faces;

  /// Noise, and up to `n` faces that do not overlap, as large as levels of the pyramid show them in a window.
  static Picture draw(std::uint32_t width, std::uint32_t height, std::uint32_t n, std::uint64_t seed) {
    Picture p{width, height, std::vector<std::uint8_t>(std::size_t{width} * height * 3), {}};
    std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    const auto random = [&] {  // xorshift64*
      state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
      return static_cast<std::uint32_t>(state * 0x2545f4914f6cdd1du >> 32);
    };
    for (std::uint8_t& pixel : p.pixels) pixel = static_cast<std::uint8_t>(80 + random() % 96);
    const Pyramid pyramid = Pyramid::of(width, height);
    for (std::uint32_t attempt = 0; attempt < 50 * n && p.faces.size() < n; ++attempt) {
      const std::uint32_t level = random() % std::min(pyramid.n, 9u);
      const Extent& size = pyramid.levels[level];
      const std::uint32_t x = random() % (size.x - kSide + 1), y = random() % (size.y - kSide + 1);
      const Rectangle where = rectangle_of(level, x, y);
      if (where.right > width || where.bottom > height) continue;
      if (std::any_of(p.faces.begin(), p.faces.end(),
                      [&](const Rectangle& r) { return r.common_area(where) != 0; }))
        continue;
      p.faces.push_back(where);
      for (std::uint32_t py = where.top; py < where.bottom; ++py) {
        for (std::uint32_t px = where.left; px < where.right; ++px) {
          std::uint32_t u = px, v = py;
          for (std::uint32_t l = 0; l < level; ++l) u = Pyramid::down(u), v = Pyramid::down(v);
          if (u < x || v < y || u >= x + kSide || v >= y + kSide) continue;
          const int bright = face_at(u - x, v - y) + static_cast<int>(random() % 3) - 1;
          std::uint8_t* const pixel = &p.pixels[(std::size_t{py} * width + px) * 3];
          std::fill(pixel, pixel + 3, static_cast<std::uint8_t>(std::clamp(bright, 0, 255)));
        }
      }
    }
    return p;
  }
};

}  // namespace faces
