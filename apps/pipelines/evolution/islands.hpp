// The stages on the host: the first, which fills populations up, the third, which selects parents, and the
// fourth, which crosses them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <numeric>
#include <vector>

#include "creature.hpp"

namespace evolution {

/// The islands' populations.
///
/// State    Of each island the creatures of two generations: children are made of one while it is replaced by
///          the other.
/// Contract For each generation of an island: reproduce() and add_costs() for each block, on any threads,
/// then
///          rank() and cross().
/// Ordering [evaluated] add_costs() of a block happens before what follows the add_costs() that returns true.
class Islands {
 public:
  Islands(const Plan& plan, const Draws& draws) : plan_{plan}, draws_{draws}, islands_(plan.islands) {
    for (Island& island : islands_) {
      for (auto& creatures : island.creatures) creatures.resize(plan.population);
      island.costs.resize(plan.population);
    }
  }
  const Plan& plan() const { return plan_; }
  const std::vector<Creature>& creatures(std::uint32_t island, std::uint32_t generation) const {
    return islands_[island].creatures[generation % 2];
  }
  const std::vector<Cost>& costs(std::uint32_t island) const { return islands_[island].costs; }

  /// Stage 1: a block of the generation, of mutants where there are any, with newcomers at the population's
  /// end. Into `out`, too.
  void reproduce(const Place& place, const Creature* mutants, Creature* out) {
    Creature* const own = &islands_[place.island].creatures[place.generation % 2][plan_.first(place.block)];
    const std::uint32_t count = plan_.count(place.block);
    for (std::uint32_t c = 0; c < count; ++c) {
      const std::uint32_t individual = plan_.first(place.block) + c;
      if (mutants != nullptr && individual < plan_.population - plan_.newcomers()) {
        own[c] = mutants[c];
      } else {
        const auto draw = draws_.of(Purpose::kNewcomer, place.island, place.generation, individual);
        for (std::uint32_t g = 0; g < kGenes; ++g)
          own[c].genes[g] = static_cast<std::int32_t>(inputs::scaled(draw[g], 2 * kLargest + 1)) - kLargest;
      }
    }
    std::memcpy(out, own, count * sizeof(Creature));
  }

  /// Stage 3, of a block. True: it was the last one of its generation.
  bool add_costs(const Place& place, const Cost* costs) {
    Island& island = islands_[place.island];
    std::copy_n(costs, plan_.count(place.block), &island.costs[plan_.first(place.block)]);
    const std::uint32_t n = island.evaluated.fetch_add(1, std::memory_order_acq_rel) + 1;  // [evaluated]
    if (n != plan_.blocks()) return false;
    island.evaluated.store(0, std::memory_order_relaxed);
    return true;
  }
  /// Stage 3, of all of a generation: its parents, the fittest first. Of equal ones the first.
  void rank(std::uint32_t island, std::uint32_t* parents) const {
    const std::vector<Cost>& costs = islands_[island].costs;
    std::vector<std::uint32_t> all(plan_.population);
    std::iota(all.begin(), all.end(), 0u);
    std::partial_sort(
        all.begin(), all.begin() + plan_.parents(), all.end(),
        [&](std::uint32_t a, std::uint32_t b) { return costs[a] != costs[b] ? costs[a] < costs[b] : a < b; });
    std::copy_n(all.begin(), plan_.parents(), parents);
  }

  /// Stage 4: a block of the next generation, before it is mutated. `place` is the children's.
  void cross(const Place& place, const std::uint32_t* parents, Creature* out) const {
    const std::vector<Creature>& of = islands_[place.island].creatures[(place.generation - 1) % 2];
    for (std::uint32_t c = 0; c < plan_.count(place.block); ++c) {
      const std::uint32_t individual = plan_.first(place.block) + c;
      if (individual < plan_.elite()) {
        out[c] = of[parents[individual]];
        continue;
      }
      const auto draw = draws_.of(Purpose::kParents, place.island, place.generation, individual);
      // Of each parent the fitter one of two.
      const auto parent = [&](std::uint64_t i) -> const Creature& {
        return of[parents[std::min(inputs::scaled(draw[2 * i], plan_.parents()),
                                   inputs::scaled(draw[2 * i + 1], plan_.parents()))]];
      };
      const Creature &a = parent(0), &b = parent(1);
      for (std::uint32_t g = 0; g < kGenes; g += 64) {
        const std::uint64_t from_b = draw[4 + g / 64];
        for (std::uint32_t i = 0; i < 64; ++i)
          out[c].genes[g + i] = (from_b >> i & 1u) != 0 ? b.genes[g + i] : a.genes[g + i];
      }
    }
  }

 private:
  struct Island {
    std::vector<Creature> creatures[2];
    std::vector<Cost> costs;
    std::atomic<std::uint32_t> evaluated{0};  // blocks
  };

  Plan plan_;
  Draws draws_;
  std::vector<Island> islands_;
};

/// Keeps islands side by side: none begins a generation while another one is more than kAhead behind. So a
/// frame that takes long has a bounded number of others behind it.
class Pace {
 public:
  static constexpr std::uint32_t kAhead = 2;
  struct Step {
    std::uint32_t island, generation;
  };

  explicit Pace(std::uint32_t islands) : evaluated_(islands, 0), waits_(islands, false) {}

  /// A generation of the island has been evaluated. The islands that may go on, and the generation that each
  /// has come to. Any thread.
  std::vector<Step> add(std::uint32_t island) {
    const std::scoped_lock lock(mutex_);
    ++evaluated_[island];
    waits_[island] = true;
    const std::uint32_t least = *std::min_element(evaluated_.begin(), evaluated_.end());
    std::vector<Step> steps;
    for (std::uint32_t i = 0; i < evaluated_.size(); ++i) {
      if (!waits_[i] || evaluated_[i] > least + kAhead) continue;
      waits_[i] = false;
      steps.push_back({i, evaluated_[i] - 1});
    }
    return steps;
  }

 private:
  std::mutex mutex_;
  std::vector<std::uint32_t> evaluated_;  // generations
  std::vector<bool> waits_;
};

}  // namespace evolution
