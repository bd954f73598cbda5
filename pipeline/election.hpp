// How lanes of a GPU that emit at a time share a topic's counter. A stage's function names one:
//
//   struct Branch {
//     using Election = pipeline::StatusArray;
//     ESKER_HD void operator()(auto& stage, const Item& item) const { stage.emit(...); }
//   };
//
//   PerConvergedWave    one addition for the lanes that are converged: what a function without one has
//   PerLane             each lane adds for itself: to compare
//   StatusArray         one addition for several waves of a group (HiWayLib, section 3.4): to compare
#pragma once

#include <cstdint>
#include <type_traits>

#include <esker/device/atomic.hpp>
#include <esker/device/platform.hpp>

namespace esker {
struct PerLane;
struct PerConvergedWave;
}  // namespace esker

namespace esker::pipeline {

/// The name of the election. Its words are in scratchpad, in kernels that have a stage with it alone.
struct StatusArray {};

namespace detail {

template <class Function>
struct ElectionOf {
  using Type = PerConvergedWave;
};
template <class Function>
requires requires { typename Function::Election; }
struct ElectionOf<Function> {
  using Type = typename Function::Election;
  static_assert(std::is_same_v<Type, PerLane> || std::is_same_v<Type, PerConvergedWave> ||
                    std::is_same_v<Type, StatusArray>,
                "a stage's Election is esker::PerLane, esker::PerConvergedWave or pipeline::StatusArray");
};

/// What the waves of a group have to reserve: an entry a wave. Zeroed before its first use.
///
/// State    An entry is free -> being filled, by its wave -> set -> served, by any wave -> free.
/// Contract One lane of some converged ones calls reserve() for them. Any branch, any wave; the counter is
///          named by a number, and `add(n)` adds to it and returns what it was.
/// Protocol Whoever has set an entry takes the lock, unless another wave has served it by then. The holder
///          scans from its own entry both ways as far as entries are set, for the same counter; adds once
///          for all of them; and gives each its part, in the order of the waves. No wave waits for one that
///          does not emit, so nothing is a barrier.
/// Ordering [set]    an entry's counter and count  happen before another wave reads them
///          [served] its part                      happens before its wave reads it
///          [lock]   one holder's scan             happens before the next one's
/// Progress Who holds the lock waits for nothing. Lanes of a wave in another branch may find its entry
///          taken: they add for themselves.
/// In the paper the first wave of those found adds, here the one that holds the lock: it need not wake
/// another. `Word` is for tests on the host: an atomic of another scope.
template <class Word>
struct StatusWords {
  static constexpr std::uint32_t kMostWaves = 32, kUnlocked = 0, kLocked = 1;
  static constexpr std::uint32_t kFree = 0, kFilling = 1, kSet = 2, kServed = 3;
  struct Entry {
    Word status;
    std::uint32_t counter, count, part;  // `part`: after the first of those that are reserved together
    std::uint64_t first;
  };
  Word lock;
  Entry entries[kMostWaves];

  template <class Add, class Rest>
  ESKER_HD std::uint64_t reserve(std::uint32_t wave, std::uint32_t counter, std::uint32_t count,
                                 const Add& add, const Rest& rest) {
    Entry& mine = entries[wave];
    std::uint32_t expected = kFree;
    if (!mine.status.compare_exchange_acquire(expected, kFilling)) return add(count);
    mine.counter = counter;
    mine.count = count;
    mine.status.store_release(kSet);                 // [set]
    while (mine.status.load_acquire() != kServed) {  // [served]
      expected = kUnlocked;
      if (lock.compare_exchange_acquire(expected, kLocked)) {  // [lock]
        if (mine.status.load_acquire() == kSet) serve(wave, counter, add);
        lock.store_release(kUnlocked);  // [lock]
      } else {
        rest();
      }
    }
    const std::uint64_t first = mine.first;
    mine.status.store_release(kFree);
    return first;
  }

 private:
  ESKER_HD bool is_set(std::uint32_t wave, std::uint32_t counter) const {
    return entries[wave].status.load_acquire() == kSet && entries[wave].counter == counter;  // [set]
  }
  template <class Add>
  ESKER_HD void serve(std::uint32_t wave, std::uint32_t counter, const Add& add) {
    std::uint32_t begin = wave, end = wave + 1, sum = 0;
    while (begin > 0 && is_set(begin - 1, counter)) --begin;
    while (end < kMostWaves && is_set(end, counter)) ++end;
    for (std::uint32_t w = begin; w < end; ++w) {
      entries[w].part = sum;
      sum += entries[w].count;
    }
    const std::uint64_t first = add(sum);
    for (std::uint32_t w = begin; w < end; ++w) {
      entries[w].first = first + entries[w].part;
      entries[w].status.store_release(kServed);  // [served]
    }
  }
};
using GroupStatusWords = StatusWords<GroupAtomic<std::uint32_t>>;

}  // namespace detail

}  // namespace esker::pipeline
