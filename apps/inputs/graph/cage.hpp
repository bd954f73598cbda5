// Cage matrices: transition probabilities of a polymer's conformations.
#pragma once

#include <cstdint>
#include <vector>

#include "../file/part.hpp"
#include "edge.hpp"

namespace inputs {

/// The cage model of A. van Heukelum, G. T. Barkema, R. H. Bisseling (J. Comput. Phys. 180, 2002), whose
/// matrices are cage3 to cage15 of the SuiteSparse collection; no randomness, so no seed.
///
/// States. A polymer of L monomers is a walk of L - 1 bonds on the tree in which each vertex has an outgoing
/// and an incoming edge for each of 3 axes. Walks are one state if an automorphism of the tree that keeps
/// the edges' directions, or reading the chain from its other end, turns one into the other.
///
/// Moves. A monomer is drawn with probability 1 / L. An end, or a monomer whose two neighbours lie at one
/// place, goes to one of the 6 places beside its neighbour: along each outgoing edge with probability p / 3,
/// along each incoming one with (1 - p) / 3, p = 0.55. Any other monomer stays.
///
/// Edge i -> j has the weight A(i, j) = Pr(state j becomes state i), an entry of the published matrix for
/// another order of the states: here the one of the canonical walks, see canonical() in the source. A
/// column's weights sum to 1.
///
/// Costs. Each process that makes edges holds all states, 8 bytes each: 41 MB for L = 15. To list them takes
/// about half a second for L = 13 and 3.4 times as long for each step of L, as there are more states; an edge
/// takes about 1 us.
class Cage {
 public:
  /// `monomers` is L. Throws esker::Error{kConfiguration} unless it is 3 to 18.
  explicit Cage(unsigned monomers);

  std::uint64_t vertices() const { return states_.size(); }

  /// Shows the edges i -> j for each j of range_of(vertices(), part), in order of j, then i. Any number of
  /// threads at once.
  void for_each_edge(Part part, const EdgeVisitor& visit) const;

 private:
  unsigned bonds_;
  std::vector<std::uint64_t> states_;  // canonical walks, sorted
};

}  // namespace inputs
