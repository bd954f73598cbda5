// What a wave does with tiles: multiplies a row of them with a column of them, and adds them.
#pragma once

#include <cstddef>
#include <cstdint>

#include <esker/lane.hpp>

namespace strassen {

inline constexpr std::uint32_t kTile = 64;  // rows and columns of what a wave computes at once

/// A square block of a matrix: row r starts at at[r * stride].
struct Block {
  float* at;
  std::size_t stride;

  ESKER_HD float* row(std::uint32_t r) const { return at + r * stride; }
  /// The block whose first element is at that row and column of this one.
  ESKER_HD Block from(std::uint32_t r, std::uint32_t column) const { return {row(r) + column, stride}; }
  /// Tile i of a block that has so many side by side.
  ESKER_HD Block tile(std::uint32_t i, std::uint32_t across) const {
    return from(i / across * kTile, i % across * kTile);
  }
};

/// Elements that a lane reads or writes at once. All blocks start at multiples of it, and so do their rows.
struct alignas(16) Four {
  float at[4];
};
static_assert(kTile % 4 == 0);

ESKER_HD inline Four& four(float* at) { return *reinterpret_cast<Four*>(at); }
ESKER_HD inline Four operator+(const Four& a, const Four& b) {
  return {{a.at[0] + b.at[0], a.at[1] + b.at[1], a.at[2] + b.at[2], a.at[3] + b.at[3]}};
}
ESKER_HD inline Four operator-(const Four& a, const Four& b) {
  return {{a.at[0] - b.at[0], a.at[1] - b.at[1], a.at[2] - b.at[2], a.at[3] - b.at[3]}};
}

/// function(row, column) for each Four of a tile, by one of the lanes.
template <class Task, class Function>
ESKER_HD void for_fours(Task& task, Function&& function) {
  task.for_each(kTile * kTile / 4, [&](std::uint32_t i) { function(i / (kTile / 4), i % (kTile / 4) * 4); });
}

/// A tile of the product: rows of one block, which `a` starts, by columns of another, which `b` starts. `n`
/// is a multiple of kTile: how many terms an element has.
///
/// Protocol The wave brings a slab of kDepth columns of a, and of kDepth rows of b, to its scratchpad. Each
/// lane
///          keeps 8 rows of the tile by as many columns as there are lanes for, and adds the slab's products
///          to them. Lanes side by side read neighbouring Fours of a row of b, lanes above each other of a
///          column of a, which is transposed for that.
class TileProduct {
 public:
  static constexpr std::uint32_t kDepth = 16;
  struct Slabs {
    static constexpr std::uint32_t kAStride = kTile + 4;  // else the lanes that transpose meet in a bank
    alignas(16) float a[kDepth * kAStride];
    alignas(16) float b[kDepth * kTile];
  };

  template <class Task>
  ESKER_HD static void multiply(Task& task, const Block& a, const Block& b, const Block& c, std::uint32_t n) {
    if constexpr (Task::kLanes == 1) {
      multiply_alone(a, b, c, n);
    } else {
      multiply_together(task, a, b, c, n);
    }
  }

 private:
  template <class Task>
  ESKER_HD static void multiply_together(Task& task, const Block& a, const Block& b, const Block& c,
                                         std::uint32_t n) {
    constexpr std::uint32_t kLanes = Task::kLanes, kRows = 8, kColumns = kTile * kTile / kRows / kLanes;
    constexpr std::uint32_t kAcross = kTile / kColumns, kDown = kTile / kRows;
    static_assert(kColumns % 4 == 0 && kAcross * kDown == kLanes);
    const std::uint32_t across = task.lane() % kAcross, down = task.lane() / kAcross;
    Slabs& slabs = task.template scratch<Slabs>();
    Four sums[kRows][kColumns / 4] = {};
    for (std::uint32_t k = 0; k < n; k += kDepth) {
      bring<Task::kLanes>(task.lane(), a.from(0, k), b.from(k, 0), slabs);
      task.sync();
      for (std::uint32_t i = 0; i < kDepth; ++i) {
        Four left[kRows / 4], right[kColumns / 4];
        for (std::uint32_t r = 0; r < kRows / 4; ++r)
          left[r] = four(slabs.a + i * Slabs::kAStride + (r * kDown + down) * 4);
        for (std::uint32_t q = 0; q < kColumns / 4; ++q)
          right[q] = four(slabs.b + i * kTile + (q * kAcross + across) * 4);
        for (std::uint32_t r = 0; r < kRows; ++r) {
          for (std::uint32_t q = 0; q < kColumns; ++q)
            sums[r][q / 4].at[q % 4] += left[r / 4].at[r % 4] * right[q / 4].at[q % 4];
        }
      }
      task.sync();
    }
    for (std::uint32_t r = 0; r < kRows; ++r) {
      float* const row = c.row((r / 4 * kDown + down) * 4 + r % 4);
      for (std::uint32_t q = 0; q < kColumns / 4; ++q) four(row + (q * kAcross + across) * 4) = sums[r][q];
    }
  }
  /// All that a lane brings is under way at a time.
  template <std::uint32_t kLanes>
  ESKER_HD static void bring(std::uint32_t lane, const Block& a, const Block& b, Slabs& slabs) {
    constexpr std::uint32_t kFours = kTile * kDepth / 4, kEach = kFours / kLanes;
    static_assert(kEach * kLanes == kFours);
    Four of_a[kEach], of_b[kEach];
    for (std::uint32_t u = 0; u < kEach; ++u) {
      const std::uint32_t i = u * kLanes + lane;
      of_a[u] = four(a.row(i / (kDepth / 4)) + i % (kDepth / 4) * 4);
      of_b[u] = four(b.row(i / (kTile / 4)) + i % (kTile / 4) * 4);
    }
    for (std::uint32_t u = 0; u < kEach; ++u) {
      const std::uint32_t i = u * kLanes + lane;
      float* const column = slabs.a + i % (kDepth / 4) * 4 * Slabs::kAStride + i / (kDepth / 4);
      for (std::uint32_t k = 0; k < 4; ++k) column[k * Slabs::kAStride] = of_a[u].at[k];
      four(slabs.b + i * 4) = of_b[u];
    }
  }

  /// A host thread: 4 rows by 8 columns at a time, which registers hold.
  ESKER_HD static void multiply_alone(const Block& a, const Block& b, const Block& c, std::uint32_t n) {
    constexpr std::uint32_t kRows = 4, kColumns = 8;
    for (std::uint32_t column = 0; column < kTile; column += kColumns) {
      for (std::uint32_t row = 0; row < kTile; row += kRows) {
        float sums[kRows][kColumns] = {};
        for (std::uint32_t k = 0; k < n; ++k) {
          const float* const right = b.row(k) + column;
          for (std::uint32_t r = 0; r < kRows; ++r) {
            const float left = a.row(row + r)[k];
            for (std::uint32_t q = 0; q < kColumns; ++q) sums[r][q] += left * right[q];
          }
        }
        for (std::uint32_t r = 0; r < kRows; ++r) {
          for (std::uint32_t q = 0; q < kColumns; ++q) c.row(row + r)[column + q] = sums[r][q];
        }
      }
    }
  }
};

}  // namespace strassen
