// Bicubic patches of Bezier: splitting, points, and where they are on the screen.
#pragma once

#include <cstdint>

#include <esker/lane.hpp>

namespace reyes {

/// As the viewer sees it: x to the right, y up, z away.
struct Point {
  float x, y, z;
};
ESKER_HD inline Point middle(const Point& a, const Point& b) {
  return {(a.x + b.x) * 0.5f, (a.y + b.y) * 0.5f, (a.z + b.z) * 0.5f};
}

struct Patch {
  Point points[16];      // [4 * v + u]
  std::uint32_t colour;  // 8 bits each: red, green, blue
  std::uint32_t level;   // how often it has been split
};

struct Screen {
  std::uint32_t width, height;
  float focus;  // pixels that a unit at distance 1 has

  ESKER_HD float x_of(const Point& p) const { return static_cast<float>(width) * 0.5f + focus * p.x / p.z; }
  ESKER_HD float y_of(const Point& p) const { return static_cast<float>(height) * 0.5f - focus * p.y / p.z; }
};

/// Of a patch: its points' box on the screen, in which all of it is, and how long its longest rows are.
struct Bound {
  float left, top, right, bottom;
  float along_u, along_v;
};
ESKER_HD inline float absolute(float x) { return x < 0 ? -x : x; }
ESKER_HD inline Bound bound_of(const Patch& patch, const Screen& screen) {
  float x[16], y[16];
  Bound b{1e30f, 1e30f, -1e30f, -1e30f, 0, 0};
  for (int i = 0; i < 16; ++i) {
    x[i] = screen.x_of(patch.points[i]);
    y[i] = screen.y_of(patch.points[i]);
    b.left = x[i] < b.left ? x[i] : b.left;
    b.right = x[i] > b.right ? x[i] : b.right;
    b.top = y[i] < b.top ? y[i] : b.top;
    b.bottom = y[i] > b.bottom ? y[i] : b.bottom;
  }
  for (int row = 0; row < 4; ++row) {
    float u = 0, v = 0;
    for (int i = 0; i < 3; ++i) {
      const int at = 4 * row + i, down = 4 * i + row;
      u += absolute(x[at + 1] - x[at]) + absolute(y[at + 1] - y[at]);
      v += absolute(x[down + 4] - x[down]) + absolute(y[down + 4] - y[down]);
    }
    b.along_u = u > b.along_u ? u : b.along_u;
    b.along_v = v > b.along_v ? v : b.along_v;
  }
  return b;
}

/// De Casteljau's method, at the middle. Additions and halves: all processors round alike.
ESKER_HD inline void halve(const Patch& patch, bool along_u, Patch& first, Patch& second) {
  const int step = along_u ? 1 : 4, next = along_u ? 4 : 1;
  for (int row = 0; row < 4; ++row) {
    const Point* const p = patch.points + row * next;
    Point *const a = first.points + row * next, *const b = second.points + row * next;
    const Point p01 = middle(p[0], p[step]), p12 = middle(p[step], p[2 * step]),
                p23 = middle(p[2 * step], p[3 * step]);
    const Point p012 = middle(p01, p12), p123 = middle(p12, p23);
    a[0] = p[0];
    a[step] = p01;
    a[2 * step] = p012;
    a[3 * step] = b[0] = middle(p012, p123);
    b[step] = p123;
    b[2 * step] = p23;
    b[3 * step] = p[3 * step];
  }
  first.colour = second.colour = patch.colour;
  first.level = second.level = patch.level + 1;
}

/// The point at (u, v), by Bernstein's polynomials.
ESKER_HD inline Point point_at(const Patch& patch, float u, float v) {
  const float nu = 1 - u, nv = 1 - v;
  const float bu[4] = {nu * nu * nu, 3 * u * nu * nu, 3 * u * u * nu, u * u * u};
  const float bv[4] = {nv * nv * nv, 3 * v * nv * nv, 3 * v * v * nv, v * v * v};
  Point sum{0, 0, 0};
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      const float weight = bv[i] * bu[j];
      sum.x += weight * patch.points[4 * i + j].x;
      sum.y += weight * patch.points[4 * i + j].y;
      sum.z += weight * patch.points[4 * i + j].z;
    }
  }
  return sum;
}

}  // namespace reyes
