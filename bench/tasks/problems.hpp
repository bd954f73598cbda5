// The problems that all sides solve: fib and queens without a cut-off, a task a call.
#pragma once

#include <cstdint>
#include <string>

#include <esker/tasks.hpp>

namespace esker::bench {

struct Fib {
  static constexpr int kMaxSpawns = 2;
  int n;
  ESKER_HD void operator()(auto& task) const {
    if (n < 2) return task.give(n);
    task.spawn(Fib{n - 1}, Fib{n - 2}).then([](auto& then, long a, long b) { then.give(a + b); });
  }
};

/// The same calls, none of which waits: leaves are counted.
struct FibLeaves {
  using Result = void;
  static constexpr int kMaxSpawns = 2;
  int n;
  ESKER_HD void operator()(auto& task) const {
    if (n < 2) return task.add(static_cast<std::uint64_t>(n));
    task.spawn(FibLeaves{n - 1}, FibLeaves{n - 2});
  }
};

/// Queens stand in some rows; `free` are the columns of the next row that are still to be tried.
struct Queens {
  using Result = void;
  static constexpr int kMaxSpawns = 2;
  std::uint32_t columns, left, right, free, all;

  ESKER_HD static std::uint32_t free_of(std::uint32_t columns, std::uint32_t left, std::uint32_t right,
                                        std::uint32_t all) {
    return all & ~(columns | left | right);
  }
  ESKER_HD void operator()(auto& task) const {
    const std::uint32_t queen = free & (~free + 1), others = free ^ queen;
    if (others != 0) task.spawn(Queens{columns, left, right, others, all});
    const std::uint32_t placed = columns | queen;
    if (placed == all) return task.add(1);
    const std::uint32_t next_left = (left | queen) << 1, next_right = (right | queen) >> 1;
    const std::uint32_t next = free_of(placed, next_left, next_right, all);
    if (next != 0) task.spawn(Queens{placed, next_left, next_right, next, all});
  }
};

enum class Kind { kFib, kFibLeaves, kQueens };

/// One of them, of some size, and what is known of it.
struct Problem {
  Kind kind;
  std::uint32_t n;

  /// The first task.
  Fib fib() const { return {static_cast<int>(n)}; }
  FibLeaves fib_leaves() const { return {static_cast<int>(n)}; }
  Queens queens() const {
    const std::uint32_t all = (std::uint32_t{1} << n) - 1;
    return {0, 0, 0, all, all};
  }
};

/// Most that Problem::n may be.
inline constexpr std::uint32_t kMostFib = 60, kMostQueens = 18;

/// The result, by code that shares nothing with the tasks: a recurrence, and published counts (OEIS A000170).
std::uint64_t expected(const Problem& problem);
/// "fib(40)".
std::string name_of(const Problem& problem);

}  // namespace esker::bench
