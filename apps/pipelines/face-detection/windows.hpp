// Windows of a pyramid's levels, where they are in the picture, and groups of those that show the same face.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <vector>

#include <esker/lane.hpp>

namespace faces {

inline constexpr std::uint32_t kWindow = 20;     // pixels of a window, each way
inline constexpr std::uint32_t kLargest = 4096;  // of a picture's width and height

/// A square in the picture.
struct Box {
  std::uint32_t x, y, side;
  friend bool operator==(const Box&, const Box&) = default;
};

/// What stages of the cascade hand on: a window of the picture in a slot. Or the picture is done: `level` is
/// kDone, and no window of it follows.
struct Window {
  static constexpr std::uint16_t kDone = 0xffff;
  std::uint16_t slot, level, x, y;
};

/// A level is 4/5 of the one above it, so a window has (5/4)^level times its size in the picture.
inline Box box_of(std::uint32_t level, std::uint32_t x, std::uint32_t y) {
  std::uint64_t up = 1;
  for (std::uint32_t i = 0; i < level; ++i) up *= 5;
  const auto in_picture = [&](std::uint64_t pixels) {
    return static_cast<std::uint32_t>(pixels * up >> 2 * level);  // below 2^60: levels end at 4096 * 0.8^23
  };
  return {in_picture(x), in_picture(y), in_picture(kWindow)};
}

/// The boxes share more than half of what both cover.
inline bool are_alike(const Box& a, const Box& b) {
  const auto shared = [](std::uint32_t a_first, std::uint32_t a_side, std::uint32_t b_first,
                         std::uint32_t b_side) {
    const std::uint32_t first = std::max(a_first, b_first),
                        end = std::min(a_first + a_side, b_first + b_side);
    return std::uint64_t{end > first ? end - first : 0};
  };
  const std::uint64_t both = shared(a.x, a.side, b.x, b.side) * shared(a.y, a.side, b.y, b.side);
  return 3 * both > std::uint64_t{a.side} * a.side + std::uint64_t{b.side} * b.side;
}

/// A face that was found.
struct Face {
  Box box;                // the mean of its windows' boxes
  std::uint32_t windows;  // at least kLeastWindows
  friend bool operator==(const Face&, const Face&) = default;
};
inline constexpr std::uint32_t kLeastWindows = 3;

inline bool is_before(const Face& a, const Face& b) {
  return std::tie(a.box.y, a.box.x, a.box.side) < std::tie(b.box.y, b.box.x, b.box.side);
}

/// Boxes that are alike, or linked by others that are, show one face. In the order of is_before(): the order
/// of the boxes does not matter.
inline std::vector<Face> grouped(const std::vector<Box>& boxes) {
  std::vector<std::size_t> parents(boxes.size());
  std::iota(parents.begin(), parents.end(), std::size_t{0});
  const auto root_of = [&](std::size_t i) {
    while (parents[i] != i) i = parents[i] = parents[parents[i]];
    return i;
  };
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (are_alike(boxes[i], boxes[j])) parents[root_of(i)] = root_of(j);
    }
  }
  struct Sum {
    std::uint64_t x, y, side;
    std::uint32_t n;
  };
  std::vector<Sum> sums(boxes.size(), Sum{0, 0, 0, 0});
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    Sum& sum = sums[root_of(i)];
    sum = {sum.x + boxes[i].x, sum.y + boxes[i].y, sum.side + boxes[i].side, sum.n + 1};
  }
  std::vector<Face> found;
  for (const Sum& sum : sums) {
    if (sum.n < kLeastWindows) continue;
    const auto mean = [&](std::uint64_t total) { return static_cast<std::uint32_t>(total / sum.n); };
    found.push_back({{mean(sum.x), mean(sum.y), mean(sum.side)}, sum.n});
  }
  std::sort(found.begin(), found.end(), is_before);
  return found;
}

}  // namespace faces
