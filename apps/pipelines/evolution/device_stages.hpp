// The stages on the device: the second, which says how fit creatures are, and the fifth, which mutates them.
#pragma once

#include <cstdint>

#include <esker/lane.hpp>

#include "creature.hpp"

namespace evolution {

/// A block of creatures to their costs.
///
/// Contract Frame f has slot f modulo `slots` of the scratch, kParts sums for each creature.
struct Evaluate {
  static constexpr std::uint32_t kParts = 32;  // lanes that add up a creature
  static constexpr std::uint32_t kGenesOfPart = kGenes / kParts;

  Cost* scratch;
  std::uint32_t slots, block;

  template <class Stage, class In, class Out>
  ESKER_HD void operator()(Stage& stage, const In& in, Out& out) const {
    Cost* const sums = scratch + in.number % slots * block * kParts;
    for (std::uint32_t i = stage.lane(); i < in.count * kParts; i += stage.lanes()) {
      const Creature& creature = in[i / kParts];
      const std::uint32_t first = i % kParts * kGenesOfPart;
      Cost sum = 0;
      for (std::uint32_t g = first; g < first + kGenesOfPart && g + 1 < kGenes; ++g)
        sum += rosenbrock(creature.genes[g], creature.genes[g + 1]);
      sums[i] = sum;
    }
    stage.sync();
    for (std::uint32_t c = stage.lane(); c < in.count; c += stage.lanes()) {
      Cost sum = 0;
      for (std::uint32_t part = 0; part < kParts; ++part) sum += sums[c * kParts + part];
      out[c] = sum;
    }
  }
};

/// A block of children, but the elite, to mutants: one gene in 64 becomes another one, mostly a near one.
struct Mutate {
  Plan plan;
  Draws draws;

  template <class Stage, class In, class Out>
  ESKER_HD void operator()(Stage& stage, const In& in, Out& out) const {
    const Place place = place_of(in.tag);
    for (std::uint32_t i = stage.lane(); i < in.count * kGenes; i += stage.lanes()) {
      const std::uint32_t c = i / kGenes, g = i % kGenes, individual = plan.first(place.block) + c;
      std::int32_t gene = in[c].genes[g];
      if (individual >= plan.elite()) {
        const std::uint64_t word =
            draws.of(Purpose::kMutation, place.island, place.generation, individual)[g];
        if (word % 64 == 0) {
          const std::int32_t most = 2 << (word >> 8 & 7);  // 2 to 256
          gene += static_cast<std::int32_t>((word >> 32) % static_cast<std::uint32_t>(2 * most + 1)) - most;
          gene = gene > kLargest ? kLargest : gene < -kLargest ? -kLargest : gene;
        }
      }
      out[c].genes[g] = gene;
    }
  }
};

}  // namespace evolution
