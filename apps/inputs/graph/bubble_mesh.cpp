// Points, vertices and edges of the mesh.
#include "bubble_mesh.hpp"

#include <fmt/format.h>
#include <esker/error.hpp>

#include <algorithm>

namespace inputs {
namespace {

constexpr std::uint64_t kTile = 16;  // points a side
constexpr std::uint64_t kHole = 6;
constexpr std::uint64_t kLeastX = 2;  // two columns beside a hole: one alone would fall into pairs of points
constexpr std::uint64_t kPlacesX = kTile - kHole - kLeastX - 1;
constexpr std::uint64_t kLeastY = 1;
constexpr std::uint64_t kPlacesY = kTile - kHole - kLeastY;
constexpr std::uint64_t kMaxTiles = 1 << 20;  // a side

static_assert(BubbleMesh::kTileVertices == kTile * kTile - kHole * kHole);

}  // namespace

BubbleMesh::BubbleMesh(std::uint64_t columns, std::uint64_t rows, std::uint64_t seed)
    : columns_{columns}, rows_{rows}, random_{seed} {
  if (std::min(columns, rows) == 0 || std::max(columns, rows) > kMaxTiles) {
    throw esker::Error(
        esker::Error::Kind::kConfiguration,
        fmt::format("bubble mesh of {} by {} tiles: both are 1 to {}", columns, rows, kMaxTiles));
  }
}

std::uint64_t BubbleMesh::edges() const {
  const std::uint64_t width = columns_ * kTile;
  const std::uint64_t height = rows_ * kTile;
  // A hole breaks 7 edges in each of its 6 rows, and half of its 6 columns' upward ones in 7.
  constexpr std::uint64_t kBroken = kHole * (kHole + 1) + kHole / 2 * (kHole + 1);
  return (width - 1) * height + width / 2 * (height - 1) - columns_ * rows_ * kBroken;
}

void BubbleMesh::for_each_edge(Part part, const EdgeVisitor& visit) const {
  const Range mine = range_of(vertices(), part);
  for (std::uint64_t v = mine.begin; v < mine.end; ++v) {
    const Point here = point_of(v);
    const auto join = [&](Point there, std::uint64_t word) {
      if (!is_vertex(there)) return;
      visit({v, vertex_at(there), static_cast<double>(1 + scaled(random_(v, word), kMaxWeight))});
    };
    join({here.x + 1, here.y}, 1);
    if ((here.x + here.y) % 2 == 0) join({here.x, here.y + 1}, 2);
  }
}

// The lowest point of the tile's hole, from the tile's corner.
BubbleMesh::Point BubbleMesh::hole(std::uint64_t tile) const {
  constexpr std::uint64_t kWordX = 3;
  constexpr std::uint64_t kWordY = 4;
  return {kLeastX + scaled(random_(tile, kWordX), kPlacesX),
          kLeastY + scaled(random_(tile, kWordY), kPlacesY)};
}

bool BubbleMesh::is_vertex(Point point) const {
  if (point.x >= columns_ * kTile || point.y >= rows_ * kTile) return false;
  const Point corner = hole(point.y / kTile * columns_ + point.x / kTile);
  // Left of or below the hole the difference wraps around to a large number.
  return point.x % kTile - corner.x >= kHole || point.y % kTile - corner.y >= kHole;
}

std::uint64_t BubbleMesh::vertex_at(Point point) const {
  const std::uint64_t tile = point.y / kTile * columns_ + point.x / kTile;
  const std::uint64_t x = point.x % kTile;
  const std::uint64_t y = point.y % kTile;
  const Point corner = hole(tile);
  std::uint64_t cut = kHole * std::clamp<std::uint64_t>(y, corner.y, corner.y + kHole) - kHole * corner.y;
  if (y >= corner.y && y < corner.y + kHole && x >= corner.x) cut += kHole;
  return tile * kTileVertices + y * kTile + x - cut;
}

BubbleMesh::Point BubbleMesh::point_of(std::uint64_t vertex) const {
  const std::uint64_t tile = vertex / kTileVertices;
  const std::uint64_t rank = vertex % kTileVertices;
  const Point corner = hole(tile);
  // The points that precede the hole, those beside it and those after it.
  const std::uint64_t before = corner.y * kTile + corner.x;
  constexpr std::uint64_t kBeside = kTile - kHole;
  const std::uint64_t rows_cut = rank < before ? 0 : std::min(kHole, (rank - before) / kBeside + 1);
  const std::uint64_t place = rank + rows_cut * kHole;
  return {tile % columns_ * kTile + place % kTile, tile / columns_ * kTile + place / kTile};
}

}  // namespace inputs
