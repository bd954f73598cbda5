// A lane among its group, on a GPU: written once over the few instructions in which vendors differ.
#pragma once

#include <cstdint>
#include <esker/device/lane.hpp>
#include <esker/device/lane_group.hpp>
#include <type_traits>

namespace esker::gpu {

inline constexpr std::uint32_t kMaxWaves = 32;  // 1024 lanes a group, 32 lanes a wave

/// Lanes of one wave that run together: all of it, or those that are converged.
///
/// Hardware gives: using Mask, an unsigned integer with a bit a lane; lane_in_wave(); converged();
/// ballot(members, flag); shuffle(members, word, lane); sync(members); count(mask); highest(mask). Lanes of
/// `members` that have exited count as lowered flags; nothing reads their words.
template <class Hardware>
class Wave {
 public:
  using Mask = typename Hardware::Mask;
  __device__ explicit Wave(Mask members) : members_{members} {}

  __device__ std::uint32_t index() const { return Hardware::count(members_ & lower()); }
  __device__ std::uint32_t size() const { return Hardware::count(members_); }

  __device__ Position position_among(bool flag) const {
    const Mask raised = Hardware::ballot(members_, flag);
    const std::uint32_t last = raised == 0 ? 0 : Hardware::highest(raised);
    return {Hardware::count(raised & lower()), Hardware::count(raised),
            Hardware::count(members_ & ((Mask{1} << last) - 1))};
  }
  // Not part of LaneGroup:

  /// What the highest lane of the view, its leader, hands in. Cheaper than broadcast(), which has to find
  /// the lane that it names.
  template <LaneValue T>
  __device__ T of_leader(T value) const {
    return detail::from_word<T>(
        Hardware::shuffle(members_, detail::to_word(value), Hardware::highest(members_)));
  }
  /// What the lowest lane that raised the flag hands in; one has.
  template <LaneValue T>
  __device__ T of_first(bool flag, T value) const {
    const std::uint32_t first = Hardware::lowest(Hardware::ballot(members_, flag));
    if constexpr (sizeof(T) == 4 && std::is_integral_v<T>) {
      return static_cast<T>(Hardware::shuffle32(members_, static_cast<std::uint32_t>(value), first));
    } else {
      return detail::from_word<T>(Hardware::shuffle(members_, detail::to_word(value), first));
    }
  }

  /// The lanes of the view that raised the flag, a bit a lane of the wave.
  __device__ Mask raised(bool flag) const { return Hardware::ballot(members_, flag); }
  /// Whether a lane of the view raised the flag.
  __device__ bool any(bool flag) const { return Hardware::ballot(members_, flag) != 0; }
  template <LaneValue T>
  __device__ T prefix_sum(T value, bool active = true) const {
    T sum{0};
    for_each_active(value, active, [&](std::uint32_t from, T other) {
      if (from < Hardware::lane_in_wave()) sum = Sum{}(sum, other);
    });
    return sum;
  }
  template <LaneValue T, detail::CheckedLaneOperation<T> Op>
  __device__ T reduce(T value, Op op, bool active = true) const {
    if (Hardware::ballot(members_, active) == Hardware::kAllLanes) {  // a tree, the same in each lane
      for (std::uint32_t step = 1; step < Hardware::kWaveLanes; step *= 2) {
        const std::uint64_t word =
            Hardware::shuffle(members_, detail::to_word(value), Hardware::lane_in_wave() ^ step);
        value = op(value, detail::from_word<T>(word));
      }
      return value;
    }
    T result = Op::template identity<T>();
    for_each_active(value, active, [&](std::uint32_t, T other) { result = op(result, other); });
    return result;
  }
  template <LaneValue T>
  __device__ T broadcast(T value, std::uint32_t from) const {
    return detail::from_word<T>(Hardware::shuffle(members_, detail::to_word(value), member(from)));
  }
  __device__ void sync() const { Hardware::sync(members_); }

  /// The lowest live lane: it speaks for the wave.
  __device__ bool is_speaker() const {
    return Hardware::lane_in_wave() == Hardware::lowest(Hardware::ballot(members_, true));
  }

 private:
  /// The lane that is member number `index`.
  __device__ std::uint32_t member(std::uint32_t index) const {
    if (members_ == Hardware::kAllLanes) return index;
    Mask rest = members_;
#pragma unroll 1
    for (std::uint32_t skipped = 0; skipped < index; ++skipped) rest &= rest - 1;
    return Hardware::lowest(rest);
  }
  __device__ static Mask lower() { return (Mask{1} << Hardware::lane_in_wave()) - 1; }

  // One shuffle an active lane. A tree of log2(lanes) shuffles would read lanes that have exited, or hand in
  // nothing.
  template <LaneValue T, class Visit>
  __device__ void for_each_active(T value, bool active, Visit visit) const {
    const std::uint64_t word = detail::to_word(value);
    for (Mask left = Hardware::ballot(members_, active); left != 0; left &= left - 1) {
      const std::uint32_t lane = Hardware::lowest(left);
      visit(lane, detail::from_word<T>(Hardware::shuffle(members_, word, lane)));
    }
  }

  Mask members_;
};

/// What the waves of a group tell each other. In scratchpad, two deep: a wave may begin collective
/// n + 1 while others still read n, and cannot begin n + 2 before all have arrived in n + 1.
struct WaveWords {
  struct Entry {
    std::uint64_t word;
    std::uint32_t collective;  // a wave that has exited leaves an old number here
    std::uint32_t last;
  };
  Entry entries[2][kMaxWaves];
};

/// All lanes of a group, through scratchpad and one barrier a collective.
template <class Hardware>
class Group {
 public:
  __device__ Group(const Lane& lane, WaveWords& words, std::uint32_t& collectives)
      : lane_{lane}, words_{words}, collectives_{collectives} {}

  __device__ std::uint32_t index() const { return lane_.lane(); }
  __device__ std::uint32_t size() const { return lane_.group_lanes(); }

  __device__ Position position_among(bool flag) const {
    const Position mine = wave().position_among(flag);
    tell(wave().is_speaker(), mine.total, mine.last);
    Position all{mine.index, 0, 0};
    for_each_wave([&](std::uint32_t w, const WaveWords::Entry& entry) {
      const auto total = static_cast<std::uint32_t>(entry.word);
      if (w < my_wave()) all.index += total;
      if (total > 0) all.last = w * Hardware::kWaveLanes + entry.last;
      all.total += total;
    });
    return all;
  }
  template <LaneValue T>
  __device__ T prefix_sum(T value, bool active = true) const {
    T sum = wave().prefix_sum(value, active);
    tell(wave().is_speaker(), detail::to_word(wave().reduce(value, Sum{}, active)));
    for_each_wave([&](std::uint32_t w, const WaveWords::Entry& entry) {
      if (w < my_wave()) sum = Sum{}(sum, detail::from_word<T>(entry.word));
    });
    return sum;
  }
  template <LaneValue T, detail::CheckedLaneOperation<T> Op>
  __device__ T reduce(T value, Op op, bool active = true) const {
    const T mine = wave().reduce(value, op, active);
    tell(wave().is_speaker(), detail::to_word(mine));
    T result = Op::template identity<T>();
    for_each_wave([&](std::uint32_t, const WaveWords::Entry& entry) {
      result = op(result, detail::from_word<T>(entry.word));
    });
    return result;
  }
  template <LaneValue T>
  __device__ T broadcast(T value, std::uint32_t from) const {
    tell(index() == from, detail::to_word(value));
    return detail::from_word<T>(words_.entries[collectives_ % 2][from / Hardware::kWaveLanes].word);
  }
  __device__ void sync() const { Hardware::group_sync(); }

 private:
  __device__ Wave<Hardware> wave() const { return Wave<Hardware>(Hardware::kAllLanes); }
  __device__ std::uint32_t my_wave() const { return index() / Hardware::kWaveLanes; }
  __device__ void tell(bool speaks, std::uint64_t word, std::uint32_t last = 0) const {
    ++collectives_;
    if (speaks) words_.entries[collectives_ % 2][my_wave()] = {word, collectives_, last};
    Hardware::group_sync();
  }
  template <class Visit>
  __device__ void for_each_wave(Visit visit) const {
    for (std::uint32_t w = 0; w * Hardware::kWaveLanes < size(); ++w) {
      const WaveWords::Entry& entry = words_.entries[collectives_ % 2][w];
      if (entry.collective == collectives_) visit(w, entry);
    }
  }

  const Lane& lane_;
  WaveWords& words_;
  std::uint32_t& collectives_;  // run so far by this lane: the same number in every live lane
};

}  // namespace esker::gpu

namespace esker {

/// The device's GroupLane; for the contract see the CPU's. Construction is collective: every lane of
/// the group does it before any diverges, once a kernel.
template <class Hardware>
class BasicGroupLane : public Lane {
 public:
  __device__ BasicGroupLane(const LaunchShape& shape, std::uint64_t group, std::uint32_t lane,
                            std::uint32_t group_lanes)
      : Lane(shape, group, lane, group_lanes), words_{scratch<gpu::WaveWords>()} {}
  BasicGroupLane(const BasicGroupLane&) = delete;
  BasicGroupLane& operator=(const BasicGroupLane&) = delete;

  __device__ gpu::Group<Hardware> group() { return {*this, words_, collectives_}; }
  __device__ gpu::Wave<Hardware> wave() const {
    const std::uint32_t first = lane() / Hardware::kWaveLanes * Hardware::kWaveLanes;
    const std::uint32_t left = group_lanes() - first;
    using Mask = typename Hardware::Mask;
    return gpu::Wave<Hardware>(left < Hardware::kWaveLanes ? (Mask{1} << left) - 1 : Hardware::kAllLanes);
  }
  /// The wave of a group whose lanes fill its waves: cheaper than wave().
  __device__ static gpu::Wave<Hardware> full_wave() { return gpu::Wave<Hardware>(Hardware::kAllLanes); }
  /// Lanes that one of them cannot wait for, since they run in lock step: those of its unit that are
  /// converged, or, where the hardware schedules lanes independently, the lane alone.
  __device__ auto lockstep() const {
    if constexpr (Hardware::kLockStep) {
      return coalesced();
    } else {
      return LoneLane{};
    }
  }
  __device__ std::uint32_t lockstep_unit() const {
    return Hardware::kLockStep ? lane() / Hardware::kWaveLanes : lane();
  }
  using Coalesced = gpu::Wave<Hardware>;
  __device__ static Coalesced coalesced() { return Coalesced(Hardware::converged()); }

  /// `at`, which is in device or host memory, not in scratchpad: atomics on it cost less where that is known.
  template <class T>
  __device__ static T* in_global(T* at) {
    return Hardware::in_global(at);
  }

  /// Device memory that this lane will soon load comes nearer, where there is an instruction for that.
  __device__ static void prefetch(const void* at) { Hardware::prefetch(at); }

  /// `at`, which is in scratchpad.
  template <class T>
  __device__ static T* in_scratch(T* at) {
    return Hardware::in_scratch(at);
  }

  static constexpr std::uint32_t kWaveLanes = Hardware::kWaveLanes;
  __device__ static std::uint32_t wave_of(std::uint32_t lane) { return lane / Hardware::kWaveLanes; }
  __device__ static std::uint32_t lowest_bit(std::uint32_t word) { return Hardware::lowest(word); }

  template <class T>
  __device__ T& scratch() const {
    auto* const words = reinterpret_cast<std::uint32_t*>(&scratch_of<T>());
    for (std::uint32_t i = lane(); i < sizeof(T) / 4; i += group_lanes()) words[i] = 0;
    Hardware::group_sync();
    return scratch_of<T>();
  }
  /// The group's T, which scratch() has made: for functions that are better off with no address of it.
  template <class T>
  __device__ static T& scratch_of() {
    static_assert(std::is_trivially_destructible_v<T> && sizeof(T) % 4 == 0);
    alignas(16) __shared__ std::uint32_t memory[sizeof(T) / 4];
    return *reinterpret_cast<T*>(memory);
  }

  /// Scratchpad that the launch gives each group beside what it declares: launch_on_device()'s scratch_bytes.
  __device__ static std::uint64_t* lent_scratch() { return Hardware::lent_scratch(); }

  /// What this lane has done in scratchpad happens before what it does there next, for lanes of its group. Of
  /// other memory it says nothing: a fence, or a release, waits until all updates that are under way have
  /// arrived, which takes as long as memory takes.
  __device__ static void scratch_fence() { Hardware::scratch_fence(); }

  template <class Ready>
  __device__ void await(const char*, Ready ready) const {
    while (!ready()) yield();
  }

 private:
  gpu::WaveWords& words_;
  std::uint32_t collectives_ = 0;
};

}  // namespace esker
