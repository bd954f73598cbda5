// What evolves, and the random numbers by which it does.
#pragma once

#include <cstdint>

#include <esker/lane.hpp>

#include "../../inputs/random.hpp"

namespace evolution {

inline constexpr std::uint32_t kGenes = 256;
inline constexpr std::int32_t kOne = 1024;      // genes are numbers with 10 binary places
inline constexpr std::int32_t kLargest = 2048;  // and not larger, nor smaller than its opposite

struct Creature {
  std::int32_t genes[kGenes];
};
/// The smaller, the fitter.
using Cost = std::int64_t;

/// A term of Rosenbrock's function, exact in whole numbers: 100 (y - x^2)^2 + (1 - x)^2.
ESKER_HD constexpr Cost rosenbrock(std::int64_t x, std::int64_t y) {
  const std::int64_t valley = y * kOne - x * x, slope = (kOne - x) * kOne;
  return 100 * valley * valley + slope * slope;
}
static_assert(rosenbrock(-kLargest, -kLargest) < (std::int64_t{1} << 55), "the sum fits a word");

/// What is evolved, and for how long.
struct Plan {
  std::uint32_t islands, population, generations;  // generations beyond the first
  std::uint32_t block;                             // creatures of a frame

  ESKER_HD constexpr std::uint32_t blocks() const { return (population + block - 1) / block; }
  ESKER_HD constexpr std::uint32_t first(std::uint32_t b) const { return b * block; }
  ESKER_HD constexpr std::uint32_t count(std::uint32_t b) const {
    return population - first(b) < block ? population - first(b) : block;
  }
  /// The fittest are parents; the fittest of them live on unchanged; in place of the last come new ones.
  ESKER_HD constexpr std::uint32_t parents() const { return (population + 1) / 2; }
  ESKER_HD constexpr std::uint32_t elite() const { return (population + 63) / 64; }
  ESKER_HD constexpr std::uint32_t newcomers() const { return population / 16; }
};

/// A frame's tag: whose creatures it has.
struct Place {
  std::uint32_t island, generation, block;

  ESKER_HD constexpr std::uint64_t tag() const {
    return std::uint64_t{island} << 48 | std::uint64_t{generation} << 24 | block;
  }
};
ESKER_HD constexpr Place place_of(std::uint64_t tag) {
  return {static_cast<std::uint32_t>(tag >> 48), static_cast<std::uint32_t>(tag >> 24 & 0xffffff),
          static_cast<std::uint32_t>(tag & 0xffffff)};
}
inline constexpr std::uint32_t kMostIslands = 1 << 12, kMostGenerations = 1 << 20, kMostCreatures = 1 << 20;

enum class Purpose : std::uint64_t { kNewcomer, kParents, kMutation };

/// Random words by what they are for, so that it does not matter where and in which order they are drawn.
struct Draws {
  inputs::Random random;

  ESKER_HD constexpr inputs::RandomStream of(Purpose purpose, std::uint32_t island, std::uint32_t generation,
                                             std::uint32_t individual) const {
    return random.stream(static_cast<std::uint64_t>(purpose) << 56 | std::uint64_t{island} << 40 |
                         std::uint64_t{generation} << 20 | individual);
  }
};

}  // namespace evolution
