// The problems that both sides solve: fib and queens without a cut-off, a task a call.
#pragma once

#include <cstdint>

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

/// The rival's; in a source of their own, since its headers are.
namespace tbb_side {
/// Uses so many threads from now on.
void use_threads(unsigned threads);
long fib(int n);
std::uint64_t queens(std::uint32_t n);
}  // namespace tbb_side

}  // namespace esker::bench
