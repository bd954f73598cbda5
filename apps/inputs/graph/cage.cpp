// Enumeration of the states, and their moves.
#include "cage.hpp"

#include <fmt/format.h>
#include <esker/error.hpp>

#include <algorithm>
#include <array>
#include <map>

namespace inputs {
namespace {

constexpr unsigned kLeastMonomers = 3;
constexpr unsigned kMostMonomers = 18;
constexpr unsigned kAxes = 3;
constexpr unsigned kLetters = 2 * kAxes;  // of a bond: along an outgoing edge 0 to 2, an incoming one 3 to 5
constexpr double kOutgoing = 0.55;        // the published p

using Walk = std::array<unsigned char, kMostMonomers>;  // a letter a bond

constexpr unsigned char reverse_of(unsigned letter) {
  return static_cast<unsigned char>((letter + kAxes) % kLetters);
}

/// The part of the tree that a walk has visited, with its edges renamed in order of first use: a new edge
/// takes, at the place that it leaves, the first free name of its direction, and at its other end the reverse
/// of that. So the names are a walk too, and all that automorphisms keep of the old one.
class VisitedTree {
 public:
  VisitedTree() { add_place(); }

  /// The new name of the edge `letter` at `place`, which moves to its other end.
  unsigned step(unsigned& place, unsigned letter) {
    if (next_[place][letter] == kNone) {
      unsigned name = letter / kAxes * kAxes;
      while ((used_[place] >> name & 1) != 0) ++name;
      const unsigned there = add_place();
      link(place, letter, name, there);
      link(there, reverse_of(letter), reverse_of(name), place);
    }
    const unsigned name = name_[place][letter];
    place = next_[place][letter];
    return name;
  }

 private:
  static constexpr unsigned char kNone = 0xff;

  unsigned add_place() {
    next_[places_].fill(kNone);
    used_[places_] = 0;
    return places_++;
  }

  void link(unsigned from, unsigned letter, unsigned name, unsigned to) {
    next_[from][letter] = static_cast<unsigned char>(to);
    name_[from][letter] = static_cast<unsigned char>(name);
    used_[from] |= 1u << name;
  }

  unsigned places_ = 0;
  std::array<std::array<unsigned char, kLetters>, kMostMonomers> next_;
  std::array<std::array<unsigned char, kLetters>, kMostMonomers> name_;
  std::array<unsigned, kMostMonomers> used_;  // a bit a name
};

/// A walk's letters after renaming, as a number in base 6, first bond first.
std::uint64_t renamed(const Walk& walk, unsigned bonds) {
  VisitedTree tree;
  unsigned place = 0;
  std::uint64_t number = 0;
  for (unsigned b = 0; b < bonds; ++b) number = number * kLetters + tree.step(place, walk[b]);
  return number;
}

Walk from_other_end(const Walk& walk, unsigned bonds) {
  Walk result{};
  for (unsigned b = 0; b < bonds; ++b) result[b] = reverse_of(walk[bonds - 1 - b]);
  return result;
}

/// The state of a walk: the smaller number of its two directions.
std::uint64_t canonical(const Walk& walk, unsigned bonds) {
  return std::min(renamed(walk, bonds), renamed(from_other_end(walk, bonds), bonds));
}

Walk to_walk(std::uint64_t number, unsigned bonds) {
  Walk walk{};
  for (unsigned b = bonds; b-- > 0; number /= kLetters)
    walk[b] = static_cast<unsigned char>(number % kLetters);
  return walk;
}

/// Appends, in rising order, the states whose walks begin with the first `bond` letters of `walk`.
void enumerate(Walk& walk, unsigned bond, unsigned bonds, std::vector<std::uint64_t>& states) {
  if (bond == bonds) {
    const std::uint64_t number = renamed(walk, bonds);
    if (number <= renamed(from_other_end(walk, bonds), bonds)) states.push_back(number);
    return;
  }
  for (unsigned letter = 0; letter < kLetters; ++letter) {
    walk[bond] = static_cast<unsigned char>(letter);
    // Renaming changes no prefix of a canonical walk; that it keeps the letters before is known.
    if (renamed(walk, bond + 1) % kLetters == letter) enumerate(walk, bond + 1, bonds, states);
  }
}

}  // namespace

Cage::Cage(unsigned monomers) : bonds_{monomers - 1} {
  if (monomers < kLeastMonomers || monomers > kMostMonomers) {
    throw esker::Error(
        esker::Error::Kind::kConfiguration,
        fmt::format("cage of {} monomers: they are {} to {}", monomers, kLeastMonomers, kMostMonomers));
  }
  Walk walk{};
  enumerate(walk, 0, bonds_, states_);
}

void Cage::for_each_edge(Part part, const EdgeVisitor& visit) const {
  const Range mine = range_of(vertices(), part);
  const double chosen = 1.0 / (bonds_ + 1);
  std::map<std::uint64_t, double> column;
  for (std::uint64_t j = mine.begin; j < mine.end; ++j) {
    const Walk walk = to_walk(states_[j], bonds_);
    column.clear();
    for (unsigned monomer = 0; monomer <= bonds_; ++monomer) {
      const bool is_first = monomer == 0;
      const bool is_last = monomer == bonds_;
      if (!is_first && !is_last && walk[monomer] != reverse_of(walk[monomer - 1])) {
        column[j] += chosen;
        continue;
      }
      for (unsigned letter = 0; letter < kLetters; ++letter) {
        Walk moved = walk;
        if (!is_first) moved[monomer - 1] = static_cast<unsigned char>(letter);
        if (!is_last) moved[monomer] = reverse_of(letter);
        const auto state = std::lower_bound(states_.begin(), states_.end(), canonical(moved, bonds_));
        const double probability = (letter < kAxes ? kOutgoing : 1 - kOutgoing) / kAxes;
        column[static_cast<std::uint64_t>(state - states_.begin())] += chosen * probability;
      }
    }
    for (const auto& [i, probability] : column) visit({i, j, probability});
  }
}

}  // namespace inputs
