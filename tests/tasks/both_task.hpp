// Fib, of which a part of the calls are tasks of the whole wave: two types among each other, of which one is
// given on one by one. On the CPU a whole wave is a loop, one task at a time.
#pragma once

#include <esker/tasks.hpp>

namespace esker::testing {

struct Both;
struct Whole {
  using Spawns = tasks::Types<Both, Whole>;
  static constexpr int kMaxSpawns = 2;
  static constexpr bool kWholeWave = true;
  int n;
  void operator()(auto& task) const;
};
struct Both {
  using Spawns = Whole::Spawns;
  static constexpr int kMaxSpawns = 2;
  int n;
  void operator()(auto& task) const {
    if (n < 2) return task.give(n);
    task.spawn(Whole{n - 2}, Both{n - 1}).then([](auto& then, long a, long b) { then.give(a + b); });
  }
};
inline void Whole::operator()(auto& task) const {
  if (n < 2) return task.give(n);
  task.spawn(Whole{n - 2}, Both{n - 1}).then([](auto& then, long a, long b) { then.give(a + b); });
}

}  // namespace esker::testing
