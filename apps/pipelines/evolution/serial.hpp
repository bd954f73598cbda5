// The verifier: one island after the other, one generation after the other, creature by creature.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "creature.hpp"

namespace evolution {

struct SerialCreature {
  std::array<std::int32_t, kGenes> genes;
  Cost cost;
  std::uint32_t number;
};

/// The last generation of an island, in the order of its numbers.
inline std::vector<SerialCreature> serial_island(const Plan& plan, const Draws& draws, std::uint32_t island) {
  std::vector<SerialCreature> now(plan.population), next(plan.population);
  for (std::uint32_t generation = 0;; ++generation) {
    for (std::uint32_t n = 0; n < plan.population; ++n) {
      SerialCreature& c = now[n];
      if (generation == 0 || n >= plan.population - plan.population / 16) {
        const auto draw = draws.of(Purpose::kNewcomer, island, generation, n);
        for (std::uint32_t g = 0; g < kGenes; ++g)
          c.genes[g] = static_cast<std::int32_t>(inputs::scaled(draw[g], 4097)) - 2048;
      }
      c.number = n;
      c.cost = 0;
      for (std::uint32_t g = 1; g < kGenes; ++g) {
        const std::int64_t x = c.genes[g - 1], y = c.genes[g];
        const std::int64_t valley = 1024 * y - x * x, slope = 1024 * (1024 - x);
        c.cost += 100 * valley * valley + slope * slope;
      }
    }
    if (generation == plan.generations) return now;
    std::vector<SerialCreature> ranked = now;
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const SerialCreature& a, const SerialCreature& b) { return a.cost < b.cost; });
    const std::uint32_t n_parents = (plan.population + 1) / 2, n_elite = (plan.population + 63) / 64;
    for (std::uint32_t n = 0; n < plan.population; ++n) {
      SerialCreature& child = next[n];
      if (n < n_elite) {
        child = ranked[n];
        continue;
      }
      const auto draw = draws.of(Purpose::kParents, island, generation + 1, n);
      const auto mutation = draws.of(Purpose::kMutation, island, generation + 1, n);
      std::uint64_t rank[4];
      for (std::uint64_t i = 0; i < 4; ++i) rank[i] = inputs::scaled(draw[i], n_parents);
      const SerialCreature &a = ranked[std::min(rank[0], rank[1])], &b = ranked[std::min(rank[2], rank[3])];
      for (std::uint32_t g = 0; g < kGenes; ++g) {
        const bool is_of_b = (draw[4 + g / 64] >> (g % 64) & 1u) != 0;
        std::int64_t gene = is_of_b ? b.genes[g] : a.genes[g];
        if (mutation[g] % 64 == 0) {
          const std::int64_t most = std::int64_t{2} << (mutation[g] >> 8 & 7);
          gene += static_cast<std::int64_t>(mutation[g] >> 32) % (2 * most + 1) - most;
          gene = std::clamp<std::int64_t>(gene, -2048, 2048);
        }
        child.genes[g] = static_cast<std::int32_t>(gene);
      }
    }
    now.swap(next);
  }
}

}  // namespace evolution
