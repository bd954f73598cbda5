// The naive Fibonacci number as tasks, a task a call (thesis, 4.2 and 4.3).
#pragma once

#include <cstdint>

#include <esker/tasks.hpp>

namespace fibonacci {

/// Each call waits for its two children and adds what they give (Figure 4-6).
struct Fib {
  static constexpr int kMaxSpawns = 2;
  int n;
  ESKER_HD void operator()(auto& task) const {
    if (n < 2) return task.give(n);
    task.spawn(Fib{n - 1}, Fib{n - 2}).then([](auto& then, long a, long b) { then.give(a + b); });
  }
};

/// The same calls, none of which waits: leaves are counted (Figure 4-5).
struct FibLeaves {
  using Result = void;
  static constexpr int kMaxSpawns = 2;
  int n;
  ESKER_HD void operator()(auto& task) const {
    if (n < 2) return task.add(static_cast<std::uint64_t>(n));
    task.spawn(FibLeaves{n - 1}, FibLeaves{n - 2});
  }
};

}  // namespace fibonacci
