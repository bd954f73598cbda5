// The model: teapots like Newell's, of 28 patches each. The first stage, on the host.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "patch.hpp"

namespace reyes {

/// Teapots in rows, each turned in its own way, seen from above.
struct Table {
  std::uint32_t pots;
  Screen screen;

  std::uint32_t columns() const {
    return static_cast<std::uint32_t>(std::ceil(std::sqrt(static_cast<double>(pots))));
  }
};

namespace detail {

using Place = std::array<double, 3>;  // x, y, and z up, as Newell's
using Places = std::array<Place, 16>;
using Curve = std::array<std::array<double, 2>, 4>;

/// A quarter of what a curve (radius, height) turns into.
inline Places revolved(const Curve& curve, int quarter) {
  constexpr double kRound = 0.5522847498;
  const double x[4] = {1, 1, kRound, 0}, y[4] = {0, kRound, 1, 1};
  Places places{};
  for (std::size_t v = 0; v < 4; ++v) {
    for (std::size_t u = 0; u < 4; ++u) {
      double px = x[u] * curve[v][0], py = y[u] * curve[v][0];
      for (int i = 0; i < quarter; ++i) {
        const double turned = -py;
        py = px;
        px = turned;
      }
      places[4 * v + u] = {px, py, curve[v][1]};
    }
  }
  return places;
}
/// A half of a tube between two curves (x, height), as wide as `width` says.
inline Places tube(const Curve& inner, const Curve& outer, const std::array<double, 4>& width, double side) {
  Places places{};
  for (std::size_t v = 0; v < 4; ++v) {
    places[4 * v] = {inner[v][0], 0, inner[v][1]};
    places[4 * v + 1] = {inner[v][0], side * width[v], inner[v][1]};
    places[4 * v + 2] = {outer[v][0], side * width[v], outer[v][1]};
    places[4 * v + 3] = {outer[v][0], 0, outer[v][1]};
  }
  return places;
}

inline std::vector<Places> teapot() {
  std::vector<Places> patches;
  const Curve turned[] = {{{{0, 3.15}, {0.8, 3.15}, {0, 2.7}, {0.2, 2.55}}},
                          {{{0.2, 2.55}, {0.4, 2.4}, {1.3, 2.4}, {1.3, 2.25}}},
                          {{{1.4, 2.25}, {1.3375, 2.38125}, {1.4375, 2.38125}, {1.5, 2.25}}},
                          {{{1.5, 2.25}, {1.75, 1.725}, {2, 1.2}, {2, 0.75}}},
                          {{{2, 0.75}, {2, 0.3}, {1.5, 0.075}, {1.5, 0}}}};
  for (const Curve& curve : turned) {
    for (int quarter = 0; quarter < 4; ++quarter) patches.push_back(revolved(curve, quarter));
  }
  struct Tube {
    Curve inner, outer;
    std::array<double, 4> width;
  };
  const Tube tubes[] = {{{{{-1.6, 2.025}, {-2.3, 2.025}, {-2.7, 2.025}, {-2.7, 1.8}}},
                         {{{-1.5, 2.25}, {-2.5, 2.25}, {-3, 2.25}, {-3, 1.8}}},
                         {0.3, 0.3, 0.3, 0.3}},
                        {{{{-2.7, 1.8}, {-2.7, 1.575}, {-2.5, 1.125}, {-2, 0.9}}},
                         {{{-3, 1.8}, {-3, 1.35}, {-2.65, 0.9375}, {-1.9, 0.6}}},
                         {0.3, 0.3, 0.3, 0.3}},
                        {{{{1.7, 0.45}, {3.1, 0.675}, {2.4, 1.875}, {3.3, 2.25}}},
                         {{{1.7, 1.275}, {2.6, 1.275}, {2.3, 1.95}, {2.7, 2.25}}},
                         {0.66, 0.66, 0.25, 0.25}},
                        {{{{3.3, 2.25}, {3.525, 2.34375}, {3.45, 2.3625}, {3.2, 2.25}}},
                         {{{2.7, 2.25}, {2.8, 2.325}, {2.9, 2.325}, {2.8, 2.25}}},
                         {0.25, 0.25, 0.15, 0.15}}};
  for (const Tube& t : tubes) {
    for (const double side : {-1.0, 1.0}) patches.push_back(tube(t.inner, t.outer, t.width, side));
  }
  return patches;
}

}  // namespace detail

/// The patches of one pot.
inline std::vector<Patch> pot(const Table& table, std::uint32_t number) {
  static const std::vector<detail::Places> model = detail::teapot();
  const double columns = table.columns(), rows = std::ceil(table.pots / columns);
  const double right = 7 * (number % table.columns() - (columns - 1) / 2),
               back = 7 * ((rows - 1) / 2 - std::floor(number / columns));
  const double turn = 0.5 + 0.7 * number, tilt = 0.6, distance = 7 * columns + 4;
  const std::uint32_t colours[] = {0xd8e0f0, 0xf0b060, 0x80c0a0, 0xe08080, 0x90a0f0};
  std::vector<Patch> patches;
  for (const detail::Places& places : model) {
    Patch& patch = patches.emplace_back(Patch{{}, colours[number % 5], 0});
    for (std::size_t i = 0; i < 16; ++i) {
      const auto& [x, y, up] = places[i];
      const double px = x * std::cos(turn) - y * std::sin(turn) + right,
                   pz = x * std::sin(turn) + y * std::cos(turn) + back, py = up - 1.2;
      patch.points[i] = {static_cast<float>(px),
                         static_cast<float>(py * std::cos(tilt) + pz * std::sin(tilt)),
                         static_cast<float>(pz * std::cos(tilt) - py * std::sin(tilt) + distance)};
    }
  }
  return patches;
}
inline constexpr std::uint32_t kPotPatches = 28;

}  // namespace reyes
