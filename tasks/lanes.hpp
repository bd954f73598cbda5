// The lanes of a domain: a wave of a GPU, or a host thread that takes a batch as a loop.
#pragma once

#include <cstdint>
#include <new>
#include <utility>

#include <esker/device/atomic.hpp>
#include <esker/device/group.hpp>
#include <esker/device/platform.hpp>
#include <esker/tasks/level.hpp>

#if defined(ESKER_ON_CPU)
#include <sched.h>
#include <time.h>
#endif

namespace esker::tasks::detail {

/// What the layout of levels depends on: known to the host for any device.
struct ThreadShape {
  static constexpr std::uint32_t kBatch = 32;
  static constexpr std::uint32_t kHotLevels = 64;
  static constexpr bool kRandom = false;  // decisions at random, for tests
};
template <std::uint32_t kWaveLanes>
struct WaveShape {
  static constexpr std::uint32_t kBatch = kWaveLanes;
  static constexpr std::uint32_t kHotLevels = 4;
  static constexpr bool kRandom = false;
};

#if !defined(ESKER_ON_CPU)
ESKER_PASS_BEGIN

/// A wave. What for_each() and the leader have done happens, for all lanes of it, before what follows.
class WaveLanes {
 public:
  using Shape = WaveShape<GroupLane::kWaveLanes>;
  static constexpr std::uint32_t kBatch = Shape::kBatch;

  ESKER_HD explicit WaveLanes(GroupLane& lane) : index_{lane.wave().index()} { wave_ = &lane; }

  ESKER_HD void sync() const { wave_->wave().sync(); }
  /// One lane calls.
  template <class Function>
  ESKER_HD void leader(Function&& function) const {
    sync();
    if (index_ == 0) function();
    sync();
  }
  /// All get what it returns.
  template <class Function>
  ESKER_HD auto of_leader(Function&& function) const {
    sync();
    decltype(function()) value{};
    if (index_ == 0) value = function();
    value = wave_->wave().broadcast(value, 0);
    sync();
    return value;
  }
  /// n is at most kBatch.
  template <class Function>
  ESKER_HD void for_each(std::uint32_t n, Function&& function) const {
    if (index_ < n) function(index_);
    sync();
  }
  template <class Function>
  ESKER_HD void for_many(std::uint32_t n, Function&& function) const {
    for (std::uint32_t i = index_; i < n; i += kBatch) function(i);
  }
  /// All load before any runs.
  template <std::uint32_t, class Taken, class Load, class Run>
  ESKER_HD void each_of_batch(std::uint32_t n, Load&& load, Run&& run) const {
    union Space {
      ESKER_HD Space() {}
      Taken taken;
    } space;
    if (index_ < n) space.taken = load(index_);
    sync();
    if (index_ < n) run(index_, space.taken);
    sync();
  }
  /// The first i below n, at most kBatch, of which it is true; kNone: of none.
  template <class Function>
  ESKER_HD std::uint32_t first_where(std::uint32_t n, Function&& function) const {
    const bool is = index_ < n && function(index_);
    const auto wave = wave_->wave();
    return wave.any(is) ? wave.of_first(is, index_) : kNone;
  }
  /// Calls function(view, i, i < n) in all lanes together: for collectives of the view. n is at most kBatch.
  template <class Function>
  ESKER_HD void together(std::uint32_t n, Function&& function) const {
    auto wave = wave_->wave();
    function(wave, index_, index_ < n);
    sync();
  }
  /// load(view, i, place) says whether lane i has got a value, which it puts into place; all lanes call it
  /// together, and all load before any runs. run(i, value) is called in those that have. Returns how many.
  template <std::uint32_t, class T, class Load, class Run>
  ESKER_HD std::uint32_t load_and_run(std::uint32_t /*most*/, Load&& load, Run&& run) const {
    union Space {
      ESKER_HD Space() {}
      T value;
    } space;
    auto wave = wave_->wave();
    const bool has = load(wave, index_, &space.value);
    const std::uint32_t n = wave.position_among(has).total;
    sync();
    if (has) run(index_, space.value);
    sync();
    return n;
  }
  /// Lanes that are in this call now.
  ESKER_ALWAYS_INLINE ESKER_HD static auto converged() { return GroupLane::coalesced(); }
  /// Of `waiting` elements that domains share, how many one of them takes at a time: they run side by side.
  ESKER_HD static std::uint32_t fair_part(std::uint32_t /*waiting*/, std::uint32_t /*domains*/) {
    return kBatch;
  }
  /// What a domain need not share with one that has nothing.
  static constexpr std::uint32_t kKept = kBatch;

  /// A place in a column; any lanes, converged or not.
  ESKER_ALWAYS_INLINE ESKER_HD static std::uint32_t reserve(std::uint32_t& count) {
    const auto together = GroupLane::coalesced();
    const Position mine = together.position_among(true);
    std::uint32_t first = 0;
    if (mine.index + 1 == mine.total) {
      first = reinterpret_cast<GroupAtomic<std::uint32_t>&>(count).fetch_add_relaxed(mine.total);
    }
    return together.of_leader(first) + mine.index;
  }
  ESKER_ALWAYS_INLINE ESKER_HD static void add(std::uint64_t& sum, std::uint64_t value) {
    const auto together = GroupLane::coalesced();
    const std::uint64_t all = together.reduce(value, Sum{});
    const Position mine = together.position_among(true);
    if (mine.index == 0) (void)reinterpret_cast<GroupAtomic<std::uint64_t>&>(sum).fetch_add_relaxed(all);
  }

  /// Longer and longer: thousands of waves may wait.
  class Pause {
   public:
    ESKER_HD static void let_others_run() { GroupLane::yield(); }
    ESKER_HD void once(std::uint32_t most = 16) {
      for (std::uint32_t i = 0; i < times_; ++i) GroupLane::yield();
      times_ = times_ < most ? times_ * 2 : times_;
    }

   private:
    std::uint32_t times_ = 1;
  };

 private:
  GroupLane* wave_;
  std::uint32_t index_;
};

ESKER_PASS_END
using DomainLanes = WaveLanes;

#else

class ThreadLanes {
 public:
  void sync() const {}
  template <class Function>
  void leader(Function&& function) const {
    function();
  }
  template <class Function>
  auto of_leader(Function&& function) const {
    return function();
  }
  template <class Function>
  void for_each(std::uint32_t n, Function&& function) const {
    for (std::uint32_t i = 0; i < n; ++i) function(i);
  }
  template <class Function>
  void for_many(std::uint32_t n, Function&& function) const {
    for (std::uint32_t i = 0; i < n; ++i) function(i);
  }
  template <std::uint32_t kMost, class Taken, class Load, class Run>
  void each_of_batch(std::uint32_t n, Load&& load, Run&& run) const {
    union Space {
      Space() {}
      Taken taken[kMost];
    } space;
    for (std::uint32_t i = 0; i < n; ++i) new (&space.taken[i]) Taken(load(i));
    for (std::uint32_t i = 0; i < n; ++i) run(i, space.taken[i]);
  }
  template <class Function>
  std::uint32_t first_where(std::uint32_t n, Function&& function) const {
    for (std::uint32_t i = 0; i < n; ++i) {
      if (function(i)) return i;
    }
    return kNone;
  }
  template <class Function>
  void together(std::uint32_t n, Function&& function) const {
    LoneLane alone;
    for (std::uint32_t i = 0; i < n; ++i) function(alone, i, true);
  }
  /// `most` that load() may find.
  template <std::uint32_t kMost, class T, class Load, class Run>
  std::uint32_t load_and_run(std::uint32_t most, Load&& load, Run&& run) const {
    union Space {
      Space() {}
      T values[kMost];
    } space;
    LoneLane alone;
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < most; ++i) {
      if (load(alone, i, &space.values[n])) ++n;
    }
    for (std::uint32_t i = 0; i < n; ++i) run(i, space.values[i]);
    return n;
  }
  static LoneLane converged() { return {}; }
  /// A thread's run one after the other: it leaves the others theirs.
  static std::uint32_t fair_part(std::uint32_t waiting, std::uint32_t domains) {
    return waiting / (2 * domains) + 1;
  }
  static constexpr std::uint32_t kKept = 1;
  static std::uint32_t reserve(std::uint32_t& count) { return count++; }
  static void add(std::uint64_t& sum, std::uint64_t value) { sum += value; }

  /// From spinning to yielding to naps, so that domains without work leave the cores alone.
  class Pause {
   public:
    static void let_others_run() { sched_yield(); }
    void once(std::uint32_t /*most*/ = 0) {
      if (++rounds_ < 16) return;
      if (rounds_ < 256) return let_others_run();
      const timespec nap{0, 50'000};
      nanosleep(&nap, nullptr);
    }

   private:
    std::uint32_t rounds_ = 0;
  };
};
using DomainLanes = ThreadLanes;

#endif

}  // namespace esker::tasks::detail
