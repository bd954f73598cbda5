// Kronecker products of stars, whose triangles are known.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../file/part.hpp"
#include "edge.hpp"

namespace inputs {

/// The graphs that the bale suite counts triangles in (Kepner et al., "Design, Generation, and Validation of
/// Extreme Scale Power-Law Graphs", IPDPSW 2018). The adjacency matrix is the Kronecker product of those of
/// stars, each a centre and m leaves. In mode 1 each star has a loop at its centre, in mode 2 at a leaf, in
/// mode 0 none; the one loop of the product is left out.
///
/// A vertex is one vertex of each star, a number whose digits say which: 0 the centre, 1 to m a leaf; the
/// last star's digit changes fastest. Each undirected edge is visited once, from the larger vertex, and
/// weighs 1.
class StarProduct {
 public:
  /// "MODE:MxMx...", as "1:3x4x5". Throws esker::Error{kConfiguration} for what is no such text, and for more
  /// than 2^32 vertices.
  explicit StarProduct(const std::string& specification);

  std::uint64_t vertices() const { return vertices_; }
  /// Undirected ones.
  std::uint64_t edges() const;
  std::uint64_t triangles() const;

  /// Shows the edges of the vertices range_of(vertices(), part) to smaller ones. Any number of threads at
  /// once.
  void for_each_edge(Part part, const EdgeVisitor& visit) const;

 private:
  std::uint64_t mode_ = 0;
  std::vector<std::uint64_t> leaves_;  // of each star
  std::uint64_t vertices_ = 1;
};

}  // namespace inputs
