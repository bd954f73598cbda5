// Counting the ways to place n queens, or finding one, a task a placement (thesis, 4.5.1).
#pragma once

#include <bit>
#include <cstdint>

#include <esker/tasks.hpp>

namespace queens {

/// The number of the lowest column of some; not of none. By hand: std::countr_zero is wrong in CUDA's device
/// code (docs/guide/gpus.md).
ESKER_HD inline std::uint32_t first_of(std::uint32_t columns) {
  return static_cast<std::uint32_t>(std::popcount((columns & (~columns + 1)) - 1));
}

/// What is taken in the rows from the next one on.
struct Taken {
  std::uint32_t columns;      // that have a queen; all ones: the board is full
  std::uint32_t left, right;  // that a queen attacks along a diagonal, in the next row
  ESKER_HD Taken with(std::uint32_t queen) const {
    return {columns | queen, (left | queen) << 1, (right | queen) >> 1};
  }
  /// Of a board with these columns: those of the next row that no queen attacks.
  ESKER_HD std::uint32_t free(std::uint32_t all) const { return all & ~(columns | left | right); }
};

/// A board whose first rows have their queens, and the columns that remain to be tried in the next row. The
/// task places one queen and leaves the rest to a second task. When no more than kBaseRows are without a
/// queen, it goes through them itself: the thesis's program has such a base case. With 0 there is no cut-off.
template <std::uint32_t kBaseRows>
struct BoardOf {
  using Result = void;
  static constexpr int kMaxSpawns = 2;
  Taken taken;
  std::uint32_t free;  // of the next row, still to be tried; not 0
  std::uint32_t all;   // columns of the board

  static BoardOf empty(std::uint32_t n) {
    const std::uint32_t all = (std::uint32_t{1} << n) - 1;
    return {{0, 0, 0}, all, all};
  }
  ESKER_HD void operator()(auto& task) const {
    const std::uint32_t queen = free & (~free + 1), others = free ^ queen;
    if (others != 0) task.spawn(BoardOf{taken, others, all});
    const Taken next = taken.with(queen);
    if (next.columns == all) return task.add(1);
    const std::uint32_t next_free = next.free(all);
    if (next_free == 0) return;
    if (kBaseRows > 0 && std::popcount(all ^ next.columns) <= static_cast<int>(kBaseRows)) {
      task.add(solutions(next, next_free, all));
    } else {
      task.spawn(BoardOf{next, next_free, all});
    }
  }

  /// Of a board with at most kBaseRows rows left. One loop, in which a lane places a queen or takes one away,
  /// so that lanes stay together; in registers: where a row's queen stands says what was free there before.
  ESKER_HD static std::uint64_t solutions(Taken taken, std::uint32_t free, std::uint32_t all) {
    constexpr std::uint32_t kNumberBits = 5;
    static_assert(kNumberBits * kBaseRows < 64);
    std::uint64_t placed = 1;  // numbers of columns, the last queen's lowest, above them a one
    std::uint64_t found = 0;
    taken.right <<= kBaseRows;  // so that nothing is lost on the right
    while (true) {
      if (free != 0) {
        const std::uint32_t number = first_of(free);
        const std::uint32_t queen = std::uint32_t{1} << number;
        if ((taken.columns | queen) == all) {
          ++found;
          free = 0;  // one column was left
          continue;
        }
        placed = placed << kNumberBits | number;
        taken.columns |= queen;
        taken.left = (taken.left | queen) << 1;
        taken.right = (taken.right | queen << kBaseRows) >> 1;
        free = all & ~(taken.columns | taken.left | taken.right >> kBaseRows);
      } else if (placed != 1) {
        const std::uint32_t number = placed & ((1u << kNumberBits) - 1), queen = std::uint32_t{1} << number;
        placed >>= kNumberBits;
        taken.columns ^= queen;
        taken.left = taken.left >> 1 ^ queen;
        taken.right = taken.right << 1 ^ queen << kBaseRows;
        free = all & ~(taken.columns | taken.left | taken.right >> kBaseRows | (2 * queen - 1));
      } else {
        return found;
      }
    }
  }
};
using Board = BoardOf<0>;

/// The same, until a board is full: that task ends the run by fail(kFound), which brings where its queens
/// are.
struct Search {
  using Result = void;
  static constexpr int kMaxSpawns = 2;
  static constexpr std::int32_t kFound = 1;
  static constexpr std::uint32_t kNumberBits = 5, kRowsAWord = 10, kMostRows = 2 * kRowsAWord;

  std::uint64_t low, high;  // numbers of columns, the first row's lowest
  Taken taken;
  std::uint32_t free, row, all;

  static Search empty(std::uint32_t n) {
    const Board board = Board::empty(n);
    return {0, 0, board.taken, board.free, 0, board.all};
  }
  ESKER_HD void operator()(auto& task) const {
    const std::uint32_t number = first_of(free);
    const std::uint32_t queen = std::uint32_t{1} << number, others = free ^ queen;
    Search next = *this;
    next.taken = taken.with(queen);
    (row < kRowsAWord ? next.low : next.high) |= std::uint64_t{number} << row % kRowsAWord * kNumberBits;
    if (next.taken.columns == all) return task.fail(kFound, next.low, next.high);
    next.free = next.taken.free(all);
    ++next.row;
    if (others != 0) task.spawn(Search{low, high, taken, others, row, all});
    if (next.free != 0) task.spawn(next);
  }
  /// The column of a row's queen.
  static std::uint32_t column(std::uint64_t low, std::uint64_t high, std::uint32_t row) {
    const std::uint64_t word = row < kRowsAWord ? low : high;
    return static_cast<std::uint32_t>(word >> row % kRowsAWord * kNumberBits) & ((1u << kNumberBits) - 1);
  }
};

}  // namespace queens
