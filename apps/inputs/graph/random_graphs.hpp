// The random graphs of the GAP benchmark suite, -g and -u: Kronecker and uniform.
#pragma once

#include <cstdint>

#include "../file/part.hpp"
#include "../random.hpp"
#include "edge.hpp"
#include "permutation.hpp"

namespace inputs {

/// What GAP and Graph500 take: edges a vertex.
constexpr std::uint64_t kGapDegree = 16;
// What is legal.
constexpr unsigned kMaxScale = 40;
constexpr std::uint64_t kMaxDegree = 1 << 20;

/// Edges that are drawn with repetition, loops and duplicates included: edge i depends on the seed and i
/// alone. Each is directed; GAP's undirected graphs add the other direction. Weights are uniform integers,
/// 1 to 255.
class RandomGraph {
 public:
  virtual ~RandomGraph() = default;

  std::uint64_t vertices() const { return std::uint64_t{1} << scale_; }
  std::uint64_t edges() const { return vertices() * degree_; }

  /// Requires i < edges().
  virtual Edge edge(std::uint64_t i) const = 0;

  /// Shows edges range_of(edges(), part) in order. Holds none of them. Any number of threads at once.
  void for_each_edge(Part part, const EdgeVisitor& visit) const;

 protected:
  /// Throws esker::Error{kConfiguration} unless scale is at most 40 and degree 1 to 2^20.
  RandomGraph(unsigned scale, std::uint64_t degree, std::uint64_t seed);

  unsigned scale() const { return scale_; }
  const Random& random() const { return random_; }
  double weight(std::uint64_t i) const;

 private:
  unsigned scale_;
  std::uint64_t degree_;
  Random random_;
};

/// Graph500's Kronecker graph (Leskovec et al., JMLR 11, 2010; Graph500 specification, section 3): for each
/// of `scale` levels, from the top bit down, an edge draws a quadrant of the adjacency matrix with
/// probabilities A = 0.57, B = 0.19, C = 0.19, D = 0.05. A bijection by the seed then renames the vertices.
class Kronecker final : public RandomGraph {
 public:
  Kronecker(unsigned scale, std::uint64_t degree, std::uint64_t seed);
  Edge edge(std::uint64_t i) const override;

 private:
  Permutation rename_;
};

/// Both ends of each edge uniform over 2^scale vertices.
class UniformRandom final : public RandomGraph {
 public:
  UniformRandom(unsigned scale, std::uint64_t degree, std::uint64_t seed);
  Edge edge(std::uint64_t i) const override;
};

}  // namespace inputs
