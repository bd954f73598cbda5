// Mariani and Silver's method by tasks that a whole wave runs.
#pragma once

#include <cstddef>
#include <cstdint>

#include <esker/lane.hpp>
#include <esker/tasks.hpp>

#include "picture.hpp"

namespace mandelbrot {

inline constexpr std::uint32_t kTilePixels = 128;  // a side of rectangles whose border is computed, at most
inline constexpr std::uint32_t kSmallPixels =
    16;  // a side of rectangles that are computed pixel by pixel, at most

struct Rectangle {
  using Result = void;
  static constexpr int kMaxSpawns = 4;
  static constexpr bool kWholeWave = true;
  const Picture* picture;
  std::uint32_t x, y, width, height;  // at least 1

  ESKER_HD void operator()(auto& task) const {
    if (width > kTilePixels || height > kTilePixels) return divide(task, *this);
    const Picture all = *picture;
    if (width <= kSmallPixels && height <= kSmallPixels) {
      task.for_each(width * height,
                    [&](std::uint32_t i) { (void)compute(all, x + i % width, y + i / width); });
      return task.add(std::uint64_t{width} * height);
    }
    std::uint32_t least = ~0u, most = 0;
    task.for_each(border(), [&](std::uint32_t i) {
      std::uint32_t dx = 0, dy = 0;
      find(i, dx, dy);
      const std::uint32_t steps = compute(all, x + dx, y + dy);
      least = steps < least ? steps : least;
      most = steps > most ? steps : most;
    });
    task.add(border());
    least = task.wave().reduce(least, esker::Min{});
    most = task.wave().reduce(most, esker::Max{});
    if (width <= 2 || height <= 2) return;
    const Rectangle inside{picture, x + 1, y + 1, width - 2, height - 2};
    if (least != most) return divide(task, inside);
    for (std::uint32_t row = 0; row < inside.height; ++row) {
      std::uint32_t* const steps = all.steps + std::size_t{inside.y + row} * all.width + inside.x;
      task.for_each(inside.width, [&](std::uint32_t i) { steps[i] = least; });
    }
  }

 private:
  ESKER_HD std::uint32_t border() const {
    return width == 1 || height == 1 ? width * height : 2 * (width + height) - 4;
  }
  /// Pixel i of the border: the rows, and what is left of the columns.
  ESKER_HD void find(std::uint32_t i, std::uint32_t& dx, std::uint32_t& dy) const {
    if (width == 1 || i < width) {
      dx = width == 1 ? 0 : i;
      dy = width == 1 ? i : 0;
    } else if (i < 2 * width) {
      dx = i - width;
      dy = height - 1;
    } else {
      const std::uint32_t left_over = i - 2 * width;
      dx = left_over % 2 * (width - 1);
      dy = 1 + left_over / 2;
    }
  }
  ESKER_HD static std::uint32_t compute(const Picture& all, std::uint32_t x, std::uint32_t y) {
    const std::uint32_t steps = all.steps_at(x, y);
    all.steps[std::size_t{y} * all.width + x] = steps;
    return steps;
  }
  ESKER_HD static void divide(auto& task, const Rectangle& all) {
    const std::uint32_t left = (all.width + 1) / 2, top = (all.height + 1) / 2;
    task.spawn(Rectangle{all.picture, all.x, all.y, left, top});
    if (all.width > left) task.spawn(Rectangle{all.picture, all.x + left, all.y, all.width - left, top});
    if (all.height > top) task.spawn(Rectangle{all.picture, all.x, all.y + top, left, all.height - top});
    if (all.width > left && all.height > top)
      task.spawn(Rectangle{all.picture, all.x + left, all.y + top, all.width - left, all.height - top});
  }
};

}  // namespace mandelbrot
