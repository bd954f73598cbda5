// The lanes of a domain: a wave of a GPU, or a host thread that takes a batch as a loop.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include <esker/device/atomic.hpp>
#include <esker/device/group.hpp>
#include <esker/device/platform.hpp>

#if defined(ESKER_ON_CPU)
#include <sched.h>
#include <time.h>
#endif

namespace esker::tasks::detail {

/// What the layout of levels depends on: known to the host for any device.
struct ThreadShape {
  static constexpr std::uint32_t kBatch = 32;
  static constexpr std::uint32_t kHotLevels = 64;
  static constexpr std::uint32_t kBatchesAGift = 256;
  static constexpr bool kRandom = false;  // decisions at random, for tests
};
template <std::uint32_t kWaveLanes>
struct WaveShape {
  static constexpr std::uint32_t kBatch = kWaveLanes;
  static constexpr std::uint32_t kHotLevels = 4;
  static constexpr std::uint32_t kBatchesAGift = 16;
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
  /// Words `by` to by + n - 1 become the first n.
  ESKER_HD void shift_down(std::uint32_t* words, std::uint32_t by, std::uint32_t n) const {
    for (std::uint32_t first = 0; first < n; first += kBatch) {
      const std::uint32_t i = first + index_;
      const std::uint32_t word = i < n ? words[by + i] : 0;
      sync();
      if (i < n) words[i] = word;
      sync();
    }
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
    ESKER_HD void once() {
      for (std::uint32_t i = 0; i < times_; ++i) GroupLane::yield();
      times_ = times_ < 16 ? times_ * 2 : times_;
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
  void shift_down(std::uint32_t* words, std::uint32_t by, std::uint32_t n) const {
    std::memmove(words, words + by, n * sizeof *words);
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
  static std::uint32_t reserve(std::uint32_t& count) { return count++; }
  static void add(std::uint64_t& sum, std::uint64_t value) { sum += value; }

  /// From spinning to yielding to naps, so that domains without work leave the cores alone.
  class Pause {
   public:
    static void let_others_run() { sched_yield(); }
    void once() {
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
