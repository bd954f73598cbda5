// A planar mesh with many holes, like the "hugebubbles" graphs of the tenth DIMACS challenge.
#pragma once

#include <cstdint>

#include "../file/part.hpp"
#include "../random.hpp"
#include "edge.hpp"

namespace inputs {

/// A honeycomb with one hole a tile.
///
/// The honeycomb, drawn as a brick wall: points (x, y) with 0 <= x < 16 columns, 0 <= y < 16 rows; (x, y) is
/// joined to (x + 1, y), and to (x, y + 1) where x + y is even. A tile is 16 by 16 points. From each tile a
/// hole of 6 by 6 points is cut: its lowest point in the tile is at x in [2, 8], y in [1, 9], uniform by the
/// seed and the tile. The points that are left are the vertices, numbered tile by tile in rows of tiles and,
/// within a tile, point by point in rows of points; so neighbours have near numbers.
///
/// The graph is planar and connected. Vertices have 3 neighbours, at the rim of a hole or of the mesh 2, and
/// at its corners 1 or 2: 2.92 on average in a large mesh. Paths are as long as the mesh is wide.
///
/// Each undirected edge is visited once, from the smaller point to the larger one. Weights are uniform
/// integers, 1 to 255.
class BubbleMesh {
 public:
  static constexpr std::uint64_t kTileVertices = 16 * 16 - 6 * 6;

  /// Tiles of the mesh. Throws esker::Error{kConfiguration} unless both are 1 to 2^20.
  BubbleMesh(std::uint64_t columns, std::uint64_t rows, std::uint64_t seed);

  std::uint64_t vertices() const { return columns_ * rows_ * kTileVertices; }
  std::uint64_t edges() const;

  /// Shows the edges of the vertices range_of(vertices(), part) to their right and upper neighbours. Holds
  /// none of them. Any number of threads at once.
  void for_each_edge(Part part, const EdgeVisitor& visit) const;

 private:
  struct Point {
    std::uint64_t x, y;
  };

  Point hole(std::uint64_t tile) const;
  bool is_vertex(Point point) const;
  std::uint64_t vertex_at(Point point) const;
  Point point_of(std::uint64_t vertex) const;

  std::uint64_t columns_;
  std::uint64_t rows_;
  Random random_;
};

}  // namespace inputs
