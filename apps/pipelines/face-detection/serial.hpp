// The verifier: level by level, window by window, on the host. It shares the cascade's tables with the
// stages, and nothing else that decides.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "cascade.hpp"
#include "picture.hpp"
#include "windows.hpp"

namespace faces {

/// What is in a picture.
struct Detections {
  std::vector<Box> windows;  // that pass all stages, in any order
  std::vector<Face> faces;
  std::uint64_t passed[Cascade::kStages + 1] = {};  // windows, and those that pass the stages up to each
};

namespace detail {

struct Grey {
  std::uint32_t width, height;
  std::vector<std::uint8_t> pixels;
  std::uint32_t at(std::uint32_t x, std::uint32_t y) const { return pixels[std::size_t{y} * width + x]; }
};

/// 4/5 of it each way: cuts each pixel into 4 x 4 parts, and takes the means of 5 x 5 of them.
inline Grey serial_scaled(const Grey& from) {
  Grey to{from.width * 4 / 5, from.height * 4 / 5, {}};
  for (std::uint32_t y = 0; y < to.height; ++y) {
    for (std::uint32_t x = 0; x < to.width; ++x) {
      std::uint32_t sum = 0;
      for (std::uint32_t part = 0; part < 25; ++part)
        sum += from.at((5 * x + part % 5) / 4, (5 * y + part / 5) / 4);
      to.pixels.push_back(static_cast<std::uint8_t>((2 * sum + 25) / 50));
    }
  }
  return to;
}

inline Grey serial_codes(const Grey& from) {
  Grey to{from.width, from.height, std::vector<std::uint8_t>(from.pixels.size())};
  const int dx[] = {-1, 0, 1, 1, 1, 0, -1, -1}, dy[] = {-1, -1, -1, 0, 1, 1, 1, 0};
  for (std::uint32_t y = 1; y + 1 < from.height; ++y) {
    for (std::uint32_t x = 1; x + 1 < from.width; ++x) {
      std::uint8_t& code = to.pixels[std::size_t{y} * to.width + x];
      for (int i = 0; i < 8; ++i) {
        const auto neighbour =
            from.at(x + static_cast<std::uint32_t>(dx[i]), y + static_cast<std::uint32_t>(dy[i]));
        if (neighbour >= from.at(x, y)) code = static_cast<std::uint8_t>(code | 1 << i);
      }
    }
  }
  return to;
}

/// How many stages the window passes, one after the other.
inline std::uint32_t serial_stages(const Cascade& cascade, const Grey& codes, std::uint32_t left,
                                   std::uint32_t top) {
  const std::uint32_t ends[Cascade::kStages] = {3, 8, 18, 36};
  std::uint32_t i = 0;
  for (std::uint32_t stage = 0; stage < Cascade::kStages; ++stage) {
    std::int32_t score = 0;
    for (; i < ends[stage]; ++i) {
      const std::uint32_t x = left + 1 + cascade.order[i] % 6 * 3, y = top + 1 + cascade.order[i] / 6 * 3;
      for (std::uint32_t k = 0; k < 9; ++k)
        score += cascade.scores[cascade.order[i]][codes.at(x + k % 3, y + k / 3)];
    }
    if (score < cascade.least[stage]) return stage;
  }
  return Cascade::kStages;
}

/// Floods from each box to those that are alike.
inline std::vector<Face> serial_groups(const std::vector<Box>& boxes) {
  std::vector<Face> faces;
  std::vector<bool> is_taken(boxes.size());
  for (std::size_t first = 0; first < boxes.size(); ++first) {
    if (is_taken[first]) continue;
    is_taken[first] = true;
    std::vector<Box> group{boxes[first]};
    for (std::size_t i = 0; i < group.size(); ++i) {
      for (std::size_t j = 0; j < boxes.size(); ++j) {
        const std::int64_t ax = group[i].x, ay = group[i].y, as = group[i].side, bx = boxes[j].x,
                           by = boxes[j].y, bs = boxes[j].side;
        const std::int64_t width = std::min(ax + as, bx + bs) - std::max(ax, bx),
                           height = std::min(ay + as, by + bs) - std::max(ay, by);
        if (is_taken[j] || width <= 0 || height <= 0) continue;
        if (2 * width * height <= as * as + bs * bs - width * height) continue;
        is_taken[j] = true;
        group.push_back(boxes[j]);
      }
    }
    if (group.size() < kLeastWindows) continue;
    std::uint64_t x = 0, y = 0, side = 0;
    for (const Box& box : group) {
      x += box.x;
      y += box.y;
      side += box.side;
    }
    const std::uint64_t n = group.size();
    faces.push_back({{static_cast<std::uint32_t>(x / n), static_cast<std::uint32_t>(y / n),
                      static_cast<std::uint32_t>(side / n)},
                     static_cast<std::uint32_t>(n)});
  }
  std::sort(faces.begin(), faces.end(), is_before);
  return faces;
}

}  // namespace detail

inline Detections serial_detections(const Cascade& cascade, const Picture& picture) {
  Detections found;
  detail::Grey level{picture.width, picture.height, picture.pixels};
  std::uint64_t numerator = 1, denominator = 1;
  while (level.width >= kWindow && level.height >= kWindow) {
    const detail::Grey codes = detail::serial_codes(level);
    for (std::uint32_t y = 0; y + kWindow <= level.height; ++y) {
      for (std::uint32_t x = 0; x + kWindow <= level.width; ++x) {
        const std::uint32_t stages = detail::serial_stages(cascade, codes, x, y);
        for (std::uint32_t i = 0; i <= stages; ++i) ++found.passed[i];
        if (stages != Cascade::kStages) continue;
        const auto in_picture = [&](std::uint64_t n) {
          return static_cast<std::uint32_t>(n * numerator / denominator);
        };
        found.windows.push_back({in_picture(x), in_picture(y), in_picture(kWindow)});
      }
    }
    level = detail::serial_scaled(level);
    numerator *= 5;
    denominator *= 4;
  }
  found.faces = detail::serial_groups(found.windows);
  return found;
}

/// A face covers at least four tenths of what it and the planted one cover.
inline bool is_found(const Box& planted, const std::vector<Face>& faces) {
  return std::any_of(faces.begin(), faces.end(), [&](const Face& face) {
    const std::int64_t ax = planted.x, ay = planted.y, as = planted.side, bx = face.box.x, by = face.box.y,
                       bs = face.box.side;
    const std::int64_t width = std::max<std::int64_t>(std::min(ax + as, bx + bs) - std::max(ax, bx), 0),
                       height = std::max<std::int64_t>(std::min(ay + as, by + bs) - std::max(ay, by), 0);
    return 10 * width * height >= 4 * (as * as + bs * bs - width * height);
  });
}

}  // namespace faces
