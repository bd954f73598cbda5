// The lanes of a domain: a wave of a GPU, or a host thread that takes a batch as a loop. Over 400 lines: two
// classes with the same members, to be read side by side.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>

#include <esker/device/atomic.hpp>
#include <esker/device/group.hpp>
#include <esker/device/lane_group.hpp>
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
  static constexpr std::uint32_t kHotSegments = 32;
  static constexpr std::uint32_t kBatchesAGift = 256;
  static constexpr bool kRandom = false;  // decisions at random, for tests
};
template <std::uint32_t kWaveLanes>
struct WaveShape {
  static constexpr std::uint32_t kBatch = kWaveLanes;
  static constexpr std::uint32_t kHotSegments = 8;
  static constexpr std::uint32_t kBatchesAGift = 16;
  static constexpr bool kRandom = false;
};

/// Of places in a column for a lane's elements: place i is first + i * stride.
struct Places {
  std::uint32_t first, stride;
};

/// A task that has been taken out of a level, and that all lanes run: a Batch of one.
template <class Taken>
class WholeBatch {
 public:
  ESKER_HD WholeBatch() {}
  template <class Lanes, class Load>
  ESKER_HD void fill(const Lanes&, std::uint32_t, std::uint32_t, Load&& load) {
    taken_ = load(0);
  }
  template <class Lanes, class Run>
  ESKER_HD std::uint64_t run(const Lanes&, std::uint32_t, Run&& run) {
    return run(0, taken_) ? 1 : 0;
  }

 private:
  union {
    std::uint32_t words_[words(sizeof(Taken))] = {};
    Taken taken_;
  };
};

/// Space for a value, which need not have a default constructor.
template <class T>
union Held {
  ESKER_HD Held() : words{} {}
  std::uint32_t words[detail::words(sizeof(T))];
  T value;
};

#if !defined(ESKER_ON_CPU)
ESKER_PASS_BEGIN

/// A wave. What for_each() and the leader have done happens, for all lanes of it, before what follows.
class WaveLanes {
 public:
  using Shape = WaveShape<GroupLane::kWaveLanes>;
  static constexpr std::uint32_t kBatch = Shape::kBatch;
  static constexpr bool kIsThread = false;
  static constexpr std::uint32_t kSums = kBatch;  // that a domain's tasks add to

  ESKER_HD explicit WaveLanes(const GroupLane& lane) : index_{lane.lane() % kBatch} {}

  /// What the compiler should know: `at` is in memory, or at hand.
  template <class T>
  ESKER_HD static T* in_memory(T* at) {
    return GroupLane::in_global(at);
  }
  template <class T>
  ESKER_HD static T* at_hand(T* at) {
    return GroupLane::in_scratch(at);
  }

  ESKER_HD void sync() const { GroupLane::full_wave().sync(); }
  /// One lane calls.
  template <class Function>
  ESKER_HD void first(Function&& function) const {
    if (index_ == 0) function();
  }
  /// One lane calls, between two sync().
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
    value = GroupLane::full_wave().broadcast(value, 0);
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
  /// Words [by, by + n) move down to the start.
  ESKER_HD void shift(std::uint32_t* words, std::uint32_t by, std::uint32_t n) const {
    for (std::uint32_t first = 0; first < n; first += kLanes) {
      const std::uint32_t i = first + index_, word = i < n ? words[by + i] : 0;
      sync();
      if (i < n) words[i] = word;
      sync();
    }
  }
  /// A bit a lane.
  ESKER_HD std::uint64_t raised(bool flag) const { return GroupLane::full_wave().raised(flag); }
  /// A number below n, which is at most kBatch, for which `is_right` holds: the first from that number modulo
  /// n on; kNone: there is none.
  template <class IsRight>
  ESKER_HD std::uint32_t find(std::uint32_t n, std::uint32_t from, IsRight&& is_right) const {
    const std::uint64_t right = raised(index_ < n && is_right(index_));
    if (right == 0) return kNone;
    const std::uint64_t later = right >> from % n << from % n;
    const std::uint64_t bits = later != 0 ? later : right;
    const auto low = static_cast<std::uint32_t>(bits);
    return low != 0 ? GroupLane::lowest_bit(low)
                    : 32 + GroupLane::lowest_bit(static_cast<std::uint32_t>(bits >> 32));
  }
  template <class Value>
  ESKER_HD std::uint64_t sum(std::uint32_t n, Value&& value) const {
    return GroupLane::full_wave().reduce(index_ < n ? value(index_) : 0, Sum{});
  }
  /// Calls the function for each element whose bit is set; the bits of those for which it returned true.
  template <class Function>
  ESKER_HD std::uint64_t for_bits(std::uint64_t bits, Function&& function) const {
    bool flag = false;
    if (bits >> index_ & 1) flag = function(index_);
    return raised(flag);
  }

  /// Tasks that have been taken out of a level, one a lane.
  template <std::uint32_t, class Taken>
  class Batch {
   public:
    ESKER_HD Batch() {
#if defined(ESKER_ON_SIMULATED)
      // gcc does not see that a lane that runs an element has filled it.
      __builtin_memset(static_cast<void*>(&taken_), 0, sizeof taken_);
#endif
    }
    /// Elements [first, first + n) are load(0) to load(n - 1).
    template <class Load>
    ESKER_HD void fill(const WaveLanes& lanes, std::uint32_t first, std::uint32_t n, Load&& load) {
      const std::uint32_t i = lanes.index_ - first;
      if (i < n) taken_ = load(i);
    }
    /// Runs the first n; the bits of those for which it returned true.
    template <class Run>
    ESKER_HD std::uint64_t run(const WaveLanes& lanes, std::uint32_t n, Run&& run) {
      bool flag = false;
      if (lanes.index_ < n) flag = run(lanes.index_, taken_);
      return lanes.raised(flag);
    }

   private:
    union {
      Taken taken_;
    };
  };

  /// Calls function(view, i, i < n) in all lanes together: for collectives of the view. n is at most kBatch.
  template <class Function>
  ESKER_HD void together(std::uint32_t n, Function&& function) const {
    auto wave = GroupLane::full_wave();
    function(wave, index_, index_ < n);
    sync();
  }
  /// load(view, i, place) says whether lane i has got a value, which it puts into place; all lanes call it
  /// together, and all load before any runs. run(i, value) is called in those that have. Returns how many.
  template <std::uint32_t, class T, class Load, class Run>
  ESKER_HD std::uint32_t load_and_run(std::uint32_t /*most*/, Load&& load, Run&& run) const {
    Held<T> held;
    auto wave = GroupLane::full_wave();
    const bool has = load(wave, index_, &held.value);
    const std::uint32_t n = wave.position_among(has).total;
    sync();
    if (has) run(index_, held.value);
    sync();
    return n;
  }
  /// Lanes that are in this call now.
  ESKER_ALWAYS_INLINE ESKER_HD static auto converged() { return GroupLane::coalesced(); }
  /// Of elements that domains share, how many one of them takes at a time: they run side by side.
  ESKER_HD static std::uint32_t fair_part(std::uint32_t, std::uint32_t) { return kBatch; }
  /// What a domain need not share with one that has nothing.
  static constexpr std::uint32_t kKept = kBatch;

  /// `number` places in a column for each lane that calls; any lanes, converged or not.
  ESKER_ALWAYS_INLINE ESKER_HD static Places reserve(std::uint32_t& count, std::uint32_t number) {
    const auto together = GroupLane::coalesced();
    const Position mine = together.position_among(true);
    std::uint32_t first = 0;
    if (mine.index + 1 == mine.total) {
      first = reinterpret_cast<GroupAtomic<std::uint32_t>&>(count).fetch_add_relaxed(mine.total * number);
    }
    return {together.of_leader(first) + mine.index, mine.total};
  }
  static constexpr std::uint32_t kLanes = kBatch;
  /// For tasks that all of them run.
  ESKER_HD static auto wave() { return GroupLane::full_wave(); }
  /// The same address, known to be in scratchpad.
  template <class T>
  ESKER_HD static T* in_scratch(std::uint32_t* at) {
    auto* const start = reinterpret_cast<char*>(GroupLane::lent_scratch());
    return reinterpret_cast<T*>(start + (reinterpret_cast<char*>(at) - start));
  }
  /// Which of a domain's sums the task with this number in its batch adds to.
  ESKER_HD static std::uint32_t sum_of(std::uint32_t task) { return task; }

  /// Longer and longer: thousands of waves may wait.
  class Pause {
   public:
    ESKER_HD static void let_others_run() { GroupLane::yield(); }
    ESKER_HD void once() {
      for (std::uint32_t i = 0; i < times_; ++i) GroupLane::yield();
      times_ = times_ < kLongest ? times_ * 2 : times_;
    }
    ESKER_HD bool is_long() const { return times_ == kLongest; }

   private:
    static constexpr std::uint32_t kLongest = 32;
    std::uint32_t times_ = 1;
  };

 private:
  std::uint32_t index_;
};

ESKER_PASS_END
using DomainLanes = WaveLanes;

#else

class ThreadLanes {
 public:
  static constexpr bool kIsThread = true;
  static constexpr std::uint32_t kSums = 1;  // that a domain's tasks add to

  template <class T>
  static T* in_memory(T* at) {
    return at;
  }
  template <class T>
  static T* at_hand(T* at) {
    return at;
  }

  void sync() const {}
  template <class Function>
  void first(Function&& function) const {
    function();
  }
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
  void shift(std::uint32_t* words, std::uint32_t by, std::uint32_t n) const {
    std::memmove(words, words + by, n * sizeof *words);
  }
  template <class IsRight>
  std::uint32_t find(std::uint32_t n, std::uint32_t from, IsRight&& is_right) const {
    for (std::uint32_t i = 0; i < n; ++i) {
      if (is_right((from + i) % n)) return (from + i) % n;
    }
    return kNone;
  }
  template <class Value>
  std::uint64_t sum(std::uint32_t n, Value&& value) const {
    std::uint64_t all = 0;
    for (std::uint32_t i = 0; i < n; ++i) all += value(i);
    return all;
  }
  template <class Function>
  std::uint64_t for_bits(std::uint64_t bits, Function&& function) const {
    std::uint64_t raised = 0;
    for (std::uint64_t left = bits; left != 0; left &= left - 1) {
      const auto i = static_cast<std::uint32_t>(__builtin_ctzll(left));
      raised |= std::uint64_t{function(i)} << i;
    }
    return raised;
  }

  template <std::uint32_t kMost, class Taken>
  class Batch {
   public:
    Batch() {
      // gcc does not see that an element that runs has been filled, where it knows that there is one.
      if constexpr (kMost == 1) std::memset(static_cast<void*>(taken_), 0, sizeof taken_);
    }
    template <class Load>
    void fill(const ThreadLanes&, std::uint32_t first, std::uint32_t n, Load&& load) {
      for (std::uint32_t i = 0; i < n; ++i) new (&taken_[first + i]) Taken(load(i));
    }
    template <class Run>
    std::uint64_t run(const ThreadLanes&, std::uint32_t n, Run&& run) {
      std::uint64_t raised = 0;
      for (std::uint32_t i = 0; i < n; ++i) raised |= std::uint64_t{run(i, taken_[i])} << i;
      return raised;
    }

   private:
    union {
      Taken taken_[kMost];
    };
  };

  template <class Function>
  void together(std::uint32_t n, Function&& function) const {
    LoneLane alone;
    for (std::uint32_t i = 0; i < n; ++i) function(alone, i, true);
  }
  /// `most` that load() may find.
  template <std::uint32_t kMost, class T, class Load, class Run>
  std::uint32_t load_and_run(std::uint32_t most, Load&& load, Run&& run) const {
    Held<T> held[kMost];
    LoneLane alone;
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < most; ++i) {
      if (load(alone, i, &held[n].value)) ++n;
    }
    for (std::uint32_t i = 0; i < n; ++i) run(i, held[i].value);
    return n;
  }
  static LoneLane converged() { return {}; }
  /// A thread's run one after the other: it leaves the others theirs.
  static std::uint32_t fair_part(std::uint32_t waiting, std::uint32_t domains) {
    return domains == 1 ? waiting : waiting / (2 * domains) + 1;
  }
  static constexpr std::uint32_t kKept = 1;
  static Places reserve(std::uint32_t& count, std::uint32_t number) {
    const std::uint32_t first = count;
    count += number;
    return {first, 1};
  }
  static std::uint32_t sum_of(std::uint32_t) { return 0; }
  static constexpr std::uint32_t kLanes = 1;
  static LoneLane wave() { return {}; }
  template <class T>
  static T* in_scratch(std::uint32_t* at) {
    return reinterpret_cast<T*>(at);
  }

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
    static bool is_long() { return false; }

   private:
    std::uint32_t rounds_ = 0;
  };
};
using DomainLanes = ThreadLanes;

#endif

}  // namespace esker::tasks::detail
