// Strassen's method by tasks that a whole wave runs (V. Strassen, Gaussian Elimination is not Optimal, 1969).
//
// A product of blocks is seven products of blocks of half their side: tasks add quadrants of the operands, a
// continuation goes on with the seven products, and a last one adds these. Blocks of the base size are
// multiplied as they are. Whatever is done with a block is done tile by tile, so that many waves do it: a
// task of a range of tiles, or of products, divides itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include <esker/lane.hpp>
#include <esker/tasks.hpp>

#include "tile.hpp"

namespace strassen {

inline constexpr std::uint32_t kMostLevels = 10;
inline constexpr std::uint32_t kProducts = 7;

/// How a product is divided, and where its temporaries are. In the device's memory, found by task.local().
///
/// Contract Each product that is divided has a place of its own, since all of a level may be under way at a
///          time: sums of quadrants of both operands, and the products that do not fit into the result.
struct Plan {
  static constexpr std::uint32_t kSums = 5, kKept = 3;  // of each operand; products
  std::uint32_t side;                                   // of the matrices: kTile * 2^levels * some number
  std::uint32_t levels;
  float* arena;

  static std::uint32_t levels_for(std::uint32_t n, std::uint32_t cutoff) {
    std::uint32_t levels = 0;
    while (levels < kMostLevels && (n + (1u << levels) - 1) >> levels > cutoff) ++levels;
    return levels;
  }
  /// Matrices of n rows get rows and columns of zeros up to this side.
  static std::uint32_t side_for(std::uint32_t n, std::uint32_t levels) {
    const std::uint32_t unit = kTile << levels;
    return (n + unit - 1) / unit * unit;
  }
  ESKER_HD std::size_t half_of(std::uint32_t level) const { return side >> (level + 1); }
  /// Elements of one product of that level.
  ESKER_HD std::size_t elements_of(std::uint32_t level) const {
    return (2 * kSums + kKept) * half_of(level) * half_of(level);
  }
  /// Elements of all products above a level.
  ESKER_HD std::size_t elements_above(std::uint32_t level) const {
    std::size_t elements = 0, products = 1;
    for (std::uint32_t l = 0; l < level; ++l, products *= kProducts) elements += products * elements_of(l);
    return elements;
  }
  std::size_t arena_elements() const { return elements_above(levels); }
  /// Block i of those that product `number` of a level has: sums of a, sums of b, products.
  ESKER_HD Block temporary(std::uint32_t level, std::uint32_t number, std::uint32_t i) const {
    return {arena + elements_above(level) + number * elements_of(level) + i * half_of(level) * half_of(level),
            half_of(level)};
  }
};

struct Multiply {
  enum Step : std::uint16_t { kProduct, kTiles, kSums, kSeven, kTotals };
  using Result = void;
  static constexpr bool kJoins = true, kWholeWave = true, kManyRegisters = true;
  static constexpr int kMaxSpawns = 4;
  static constexpr std::size_t kScratchBytes = sizeof(TileProduct::Slabs);

  Block a, b, c;             // c = a b
  std::uint32_t number;      // of this product among those of its level
  std::uint32_t first, end;  // tiles (kTiles of c; kSums, kTotals of a quadrant), or products (kSeven)
  std::uint16_t level;
  Step step;

  /// c = a b, of matrices in rows of plan.side.
  static Multiply all(const Plan& plan, float* a, float* b, float* c) {
    return {{a, plan.side}, {b, plan.side}, {c, plan.side}, 0, 0, 0, 0, kProduct};
  }

  ESKER_HD void operator()(auto& task) const {
    const Plan& plan = task.template local<const Plan>();
    if (step == kProduct) return multiply(task, plan);
    if (end - first > 1) return divide(task);
    if (step == kTiles) return multiply_tile(task, plan);
    if (step == kSums) return add_quadrants(task, plan);
    if (step == kTotals) return add_products(task, plan);
    product(plan, first).multiply(task, plan);
  }

 private:
  ESKER_HD Multiply part(Step next, std::uint32_t from, std::uint32_t to) const {
    return {a, b, c, number, from, to, level, next};
  }
  ESKER_HD void divide(auto& task) const {
    const std::uint32_t n = end - first, parts = n < kMaxSpawns ? n : kMaxSpawns;
    std::uint32_t from = first;
    for (std::uint32_t i = 1; i <= parts; ++i) {
      const std::uint32_t to = first + n * i / parts;
      task.spawn(part(step, from, to));
      from = to;
    }
  }
  ESKER_HD std::uint32_t side(const Plan& plan) const { return plan.side >> level; }
  ESKER_HD std::uint32_t half(const Plan& plan) const { return side(plan) / 2; }
  ESKER_HD static std::uint32_t tiles(std::uint32_t side) { return (side / kTile) * (side / kTile); }

  ESKER_HD void multiply(auto& task, const Plan& plan) const {
    if (level == plan.levels) return part(kTiles, 0, tiles(side(plan))).divide(task);
    task.spawn(part(kSums, 0, tiles(half(plan)))).then([whole = *this](auto& added) {
      added.spawn(whole.part(kSeven, 0, kProducts)).then([whole](auto& multiplied) {
        const Plan& same = multiplied.template local<const Plan>();
        multiplied.spawn(whole.part(kTotals, 0, tiles(whole.half(same))));
      });
    });
  }
  ESKER_HD void multiply_tile(auto& task, const Plan& plan) const {
    const std::uint32_t n = side(plan), across = n / kTile;
    TileProduct::multiply(task, a.from(first / across * kTile, 0), b.from(0, first % across * kTile),
                          c.tile(first, across), n);
  }

  // --- Quadrants: a11 is number 0, a12 1, a21 2, a22 3.

  ESKER_HD Block quadrant(const Plan& plan, const Block& block, std::uint32_t number_of_it) const {
    return block.from(number_of_it / 2 * half(plan), number_of_it % 2 * half(plan));
  }
  ESKER_HD Block sum_of_a(const Plan& plan, std::uint32_t i) const {
    return plan.temporary(level, number, i);
  }
  ESKER_HD Block sum_of_b(const Plan& plan, std::uint32_t i) const {
    return plan.temporary(level, number, Plan::kSums + i);
  }
  /// Where product i goes, m1 is number 0: a quadrant of c, of which m1, m3, m2 and m6 are, or a temporary.
  ESKER_HD Block result(const Plan& plan, std::uint32_t i) const {
    if (i == 0) return quadrant(plan, c, 0);
    if (i == 2) return quadrant(plan, c, 1);
    if (i == 1) return quadrant(plan, c, 2);
    if (i == 5) return quadrant(plan, c, 3);
    return plan.temporary(level, number, 2 * Plan::kSums + (i == 3 ? 0 : i == 4 ? 1 : 2));
  }

  /// A tile of each sum of quadrants.
  ESKER_HD void add_quadrants(auto& task, const Plan& plan) const {
    const std::uint32_t across = half(plan) / kTile;
    const auto add = [&](const Block& of, std::uint32_t first_sum, auto&& sums_of) {
      Block from[4], to[Plan::kSums];
      for (std::uint32_t q = 0; q < 4; ++q) from[q] = quadrant(plan, of, q).tile(first, across);
      for (std::uint32_t s = 0; s < Plan::kSums; ++s)
        to[s] = plan.temporary(level, number, first_sum + s).tile(first, across);
      for_fours(task, [&](std::uint32_t row, std::uint32_t column) {
        Four x[4], sums[Plan::kSums];
        for (std::uint32_t q = 0; q < 4; ++q) x[q] = four(from[q].row(row) + column);
        sums_of(x, sums);
        for (std::uint32_t s = 0; s < Plan::kSums; ++s) four(to[s].row(row) + column) = sums[s];
      });
    };
    add(a, 0, [](const Four* x, Four* sums) {
      sums[0] = x[0] + x[3];
      sums[1] = x[2] + x[3];
      sums[2] = x[0] + x[1];
      sums[3] = x[2] - x[0];
      sums[4] = x[1] - x[3];
    });
    add(b, Plan::kSums, [](const Four* x, Four* sums) {
      sums[0] = x[0] + x[3];
      sums[1] = x[1] - x[3];
      sums[2] = x[2] - x[0];
      sums[3] = x[0] + x[1];
      sums[4] = x[2] + x[3];
    });
  }
  /// Product i of the seven.
  ESKER_HD Multiply product(const Plan& plan, std::uint32_t i) const {
    const auto of = [&](std::uint32_t one, const Block& whole, std::uint32_t its_quadrant, auto&& sum) {
      return one == ~0u ? quadrant(plan, whole, its_quadrant) : sum(one);
    };
    // Of each product: the sum of a, or ~0 and a quadrant of it; and the same of b.
    const std::uint32_t sum_a = i == 0 ? 0 : i == 1 ? 1 : i == 4 ? 2 : i == 5 ? 3 : i == 6 ? 4 : ~0u;
    const std::uint32_t sum_b = i == 0 ? 0 : i == 2 ? 1 : i == 3 ? 2 : i == 5 ? 3 : i == 6 ? 4 : ~0u;
    const Block left = of(sum_a, a, i == 2 ? 0 : 3, [&](std::uint32_t s) { return sum_of_a(plan, s); });
    const Block right = of(sum_b, b, i == 1 ? 0 : 3, [&](std::uint32_t s) { return sum_of_b(plan, s); });
    return {
        left,    right, result(plan, i), number * kProducts + i, 0, 0, static_cast<std::uint16_t>(level + 1),
        kProduct};
  }
  /// A tile of each quadrant of c, which hold some of the products until then.
  ESKER_HD void add_products(auto& task, const Plan& plan) const {
    const std::uint32_t across = half(plan) / kTile;
    Block of[kProducts];
    for (std::uint32_t i = 0; i < kProducts; ++i) of[i] = result(plan, i).tile(first, across);
    for_fours(task, [&](std::uint32_t row, std::uint32_t column) {
      Four m[kProducts];
      for (std::uint32_t i = 0; i < kProducts; ++i) m[i] = four(of[i].row(row) + column);
      four(of[0].row(row) + column) = m[0] + m[3] - m[4] + m[6];
      four(of[2].row(row) + column) = m[2] + m[4];
      four(of[1].row(row) + column) = m[1] + m[3];
      four(of[5].row(row) + column) = m[0] - m[1] + m[2] + m[5];
    });
  }
};

}  // namespace strassen
