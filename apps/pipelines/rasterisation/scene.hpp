// A cube that turns, and smaller ones that go round it: the first stage, on the host.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "triangle.hpp"

namespace raster {

struct Scene {
  std::uint32_t width, height, pictures;
  std::uint32_t squares;  // of a cube's side, each way
};

/// Three corners and a colour: what is set up.
struct Primitive {
  Corner a, b, c;
  std::uint32_t colour;
};

namespace detail {

using Vector = std::array<double, 3>;

inline Vector turned(const Vector& v, double angle, double tilt) {
  const double x = v[0] * std::cos(angle) + v[2] * std::sin(angle),
               z = v[2] * std::cos(angle) - v[0] * std::sin(angle);
  return {x, v[1] * std::cos(tilt) - z * std::sin(tilt), v[1] * std::sin(tilt) + z * std::cos(tilt)};
}
/// The viewer is 6 in front of the middle, and sees what is between 2 and 10 before him.
inline Corner project(const Vector& v, const Scene& scene) {
  const double distance = v[2] + 6, scale = 1.6 * scene.height / distance;
  return {static_cast<std::int32_t>(std::lround((scene.width / 2.0 + v[0] * scale) * kSubpixels)),
          static_cast<std::int32_t>(std::lround((scene.height / 2.0 - v[1] * scale) * kSubpixels)),
          (1 / 2.0 - 1 / distance) / (1 / 2.0 - 1 / 10.0)};
}

}  // namespace detail

/// The triangles of a picture that face the viewer.
inline std::vector<Primitive> primitives_of(const Scene& scene, std::uint32_t picture) {
  using detail::Vector;
  const double turn = 2 * std::numbers::pi * picture / scene.pictures;
  std::vector<Primitive> primitives;
  for (std::uint32_t cube = 0; cube < 9; ++cube) {
    const double size = cube == 0 ? 0.8 : 0.25, angle = cube == 0 ? turn : -2 * turn;
    const double at = turn + 2 * std::numbers::pi * cube / 8;
    const Vector middle = cube == 0 ? Vector{0, 0, 0} : Vector{1.5 * std::cos(at), 0, 1.5 * std::sin(at)};
    for (std::uint32_t side = 0; side < 6; ++side) {
      const std::uint32_t axis = side / 2;
      const double front = side % 2 == 0 ? 1 : -1;
      const auto corner = [&](std::uint32_t i, std::uint32_t j) {
        Vector v{};
        v[axis] = front;
        v[(axis + 1) % 3] = front * (2.0 * i / scene.squares - 1);
        v[(axis + 2) % 3] = 2.0 * j / scene.squares - 1;
        v = detail::turned({v[0] * size, v[1] * size, v[2] * size}, angle, 0);
        v = detail::turned({v[0] + middle[0], v[1] + middle[1], v[2] + middle[2]}, 0, -0.5);
        return detail::project(v, scene);
      };
      for (std::uint32_t i = 0; i < scene.squares; ++i) {
        for (std::uint32_t j = 0; j < scene.squares; ++j) {
          const Corner a = corner(i, j), b = corner(i + 1, j), c = corner(i + 1, j + 1), d = corner(i, j + 1);
          const std::uint32_t bright = (i + j) % 2 == 0 ? 255 : 160, dim = bright / (2 + cube % 3);
          const std::uint32_t colour = axis == 0   ? bright << 16 | dim << 8 | dim
                                       : axis == 1 ? dim << 16 | bright << 8 | dim
                                                   : dim << 16 | dim << 8 | bright;
          if (area(a, b, c) > 0) primitives.push_back({a, b, c, colour});
          if (area(a, c, d) > 0) primitives.push_back({a, c, d, colour});
        }
      }
    }
  }
  return primitives;
}

}  // namespace raster
