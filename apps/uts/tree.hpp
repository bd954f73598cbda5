// The trees of Unbalanced Tree Search (Olivier et al., LCPC 2006): how many children a node has follows from
// a random number, which is made of its parent's and of its place among its siblings.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sha1.hpp"

namespace uts {

/// A tree's law, and what is known of it.
struct Tree {
  const char* name;
  bool is_geometric;     // else binomial
  double root_factor;    // children of a node, on average; of a binomial tree those of its root
  std::uint32_t height;  // of a geometric tree: nodes this deep have no children
  double probability;    // of a binomial tree: that a node has `children`
  std::uint32_t children;
  std::uint32_t seed;
  std::uint64_t nodes, leaves;  // as published
  std::uint32_t depth;
};
inline constexpr Tree kTrees[] = {
    {"T1", true, 4, 10, 0, 0, 19, 4'130'071, 3'305'118, 10},
    {"T1L", true, 4, 13, 0, 0, 29, 102'181'082, 81'746'377, 13},
    {"T3", false, 2000, 0, 0.124875, 8, 42, 4'112'897, 3'599'034, 1572},
    {"T3L", false, 2000, 0, 0.200014, 5, 7, 111'345'631, 89'076'904, 17'844},
};

inline constexpr std::uint32_t kMostChildren = 100;  // of a node of a geometric tree

/// From which random number on a node of a geometric tree has 1, 2, ... children, for all of 31 bits: so that
/// every processor counts alike, whatever its logarithm rounds to.
inline std::vector<std::uint32_t> thresholds(const Tree& tree) {
  if (!tree.is_geometric) return {static_cast<std::uint32_t>(std::ceil(tree.probability * 2147483648.0))};
  const double log_of_none = std::log(1.0 - 1.0 / (1.0 + tree.root_factor));
  const auto children = [&](std::uint64_t number) {
    const double u = static_cast<double>(number) / 2147483648.0;
    return static_cast<std::uint32_t>(std::floor(std::log(1.0 - u) / log_of_none));
  };
  std::vector<std::uint32_t> all;
  for (std::uint32_t k = 1; k <= kMostChildren; ++k) {
    std::uint64_t low = 0, high = std::uint64_t{1} << 31;  // children(low) < k
    while (low + 1 < high) {
      const std::uint64_t middle = (low + high) / 2;
      (children(middle) < k ? low : high) = middle;
    }
    if (high >> 31 != 0) break;
    all.push_back(static_cast<std::uint32_t>(high));
  }
  return all;
}

inline Digest root_of(const Tree& tree) { return sha1({0, 0, 0, 0, tree.seed}); }

/// The digest of child number `child`.
ESKER_HD inline Digest child_of(const Digest& parent, std::uint32_t child) {
  return sha1({parent.words[0], parent.words[1], parent.words[2], parent.words[3], parent.words[4], child});
}
/// A node's random number, of 31 bits.
ESKER_HD inline std::uint32_t number_of(const Digest& digest) { return digest.words[4] & 0x7fffffffu; }

}  // namespace uts
