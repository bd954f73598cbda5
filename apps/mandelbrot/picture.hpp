// A picture of the Mandelbrot set: how soon its points leave the set.
#pragma once

#include <cstdint>

#include <esker/lane.hpp>

namespace mandelbrot {

/// Of all rectangles. In the device's memory.
struct Picture {
  std::uint32_t* steps;  // width * height, rows from the top: until a point is outside, `most` if it never is
  std::uint32_t width, height, most;
  double left, top, apart;  // of the first pixel, and how far apart pixels are

  /// From -2.25 to 0.75, and as much to both sides of 0.
  static Picture of_all(std::uint32_t* steps, std::uint32_t width, std::uint32_t height, std::uint32_t most) {
    const double apart = 3.0 / width;
    return {steps, width, height, most, -2.25, apart * height / 2, apart};
  }
  ESKER_HD std::uint32_t steps_at(std::uint32_t x, std::uint32_t y) const {
    const double a = left + x * apart, b = top - y * apart;
    double re = 0, im = 0;
    std::uint32_t n = 0;
    while (n < most && re * re + im * im <= 4) {
      const double next = re * re - im * im + a;
      im = 2 * re * im + b;
      re = next;
      ++n;
    }
    return n;
  }
};

}  // namespace mandelbrot
