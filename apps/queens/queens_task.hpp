// Counting the ways to place n queens, a task a placement (thesis, 4.5.1).
#pragma once

#include <cstdint>

#include <esker/tasks.hpp>

namespace queens {

/// A board whose first rows have their queens, and the columns that remain to be tried in the next row. The
/// task places one queen and leaves the rest to a second task. There is no cut-off.
struct Board {
  using Result = void;
  static constexpr int kMaxSpawns = 2;
  std::uint32_t columns;      // that have a queen; all ones: the board is full
  std::uint32_t left, right;  // that a queen attacks along a diagonal, in the next row
  std::uint32_t free;         // of the next row, still to be tried; not 0
  std::uint32_t all;          // columns of the board

  /// Of a row, which queens attack so.
  ESKER_HD static std::uint32_t free_of(std::uint32_t columns, std::uint32_t left, std::uint32_t right,
                                        std::uint32_t all) {
    return all & ~(columns | left | right);
  }
  static Board empty(std::uint32_t n) {
    const std::uint32_t all = (std::uint32_t{1} << n) - 1;
    return {0, 0, 0, all, all};
  }
  ESKER_HD void operator()(auto& task) const {
    const std::uint32_t queen = free & (~free + 1), others = free ^ queen;
    if (others != 0) task.spawn(Board{columns, left, right, others, all});
    const std::uint32_t placed = columns | queen;
    if (placed == all) return task.add(1);
    const std::uint32_t next_left = (left | queen) << 1, next_right = (right | queen) >> 1;
    const std::uint32_t next_free = free_of(placed, next_left, next_right, all);
    if (next_free != 0) task.spawn(Board{placed, next_left, next_right, next_free, all});
  }
};

}  // namespace queens
