// What a task of a rival's scheduler is given: it keeps what the task says.
#pragma once

#include <cstdint>

#include <esker/device/platform.hpp>

#include "problems.hpp"

namespace esker::bench {

/// One call's, of a task that spawns at most two and waits for none.
template <class Task>
struct Collected {
  Task first, second;
  std::uint32_t children = 0;
  std::uint64_t sum = 0;

  ESKER_HD void spawn(const Task& one) {
    if (children++ == 0) {
      first = one;
    } else {
      second = one;
    }
  }
  ESKER_HD void spawn(const Task& one, const Task& other) {
    spawn(one);
    spawn(other);
  }
  ESKER_HD void add(std::uint64_t value) { sum += value; }
};

/// Calls function(first task) of a problem whose tasks do not wait.
template <class Function>
auto with_tasks_of(const Problem& problem, Function&& function) {
  return problem.kind == Kind::kQueens ? function(problem.queens()) : function(problem.fib_leaves());
}

/// What a rival's kernel counts, and leaves for the host.
struct Tally {
  DeviceAtomic<std::uint64_t> sum, done, inlined;
  DeviceAtomic<std::uint32_t> overflowed;
};

}  // namespace esker::bench
