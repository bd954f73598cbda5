// A lane among its group, on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/device/lane.hpp>
#include <esker/device/lane_group.hpp>
#include <type_traits>

namespace esker {

namespace cpu {

/// What a lane hands in to a collective and takes out of it.
struct Exchange {
  std::uint64_t value;  // in, and the result of all but position_among
  std::uint32_t from;   // in: source of a broadcast
  bool active;          // in
  bool present;         // the lane takes part; the engine's
  Position position;    // out: the result of position_among
};

/// One kind of collective. Its address says whether two lanes wait in the same one.
struct Collective {
  const char* name;
  void (*combine)(Exchange* lanes, std::uint32_t count);  // runs once, when the last lane has arrived
};

/// Whatever runs the lanes of a group: fibers of one thread, or one thread a lane. Lanes call it.
class GroupEngine {
 public:
  virtual ~GroupEngine() = default;
  /// Hands in `mine`, waits for the live lanes of view `view` (0 the group, 1 + w wave w), and returns
  /// what the collective made of it.
  virtual Exchange exchange(std::uint32_t lane, std::uint32_t view, const Collective& what,
                            const Exchange& mine) = 0;
  /// Waits until `ready(context)`, which only lanes of this group can make true.
  virtual void await(std::uint32_t lane, const char* where, bool (*ready)(void*), void* context) = 0;
  virtual void yield(std::uint32_t lane) = 0;
  /// Zeroed memory of this group, the same for every lane that names the same key.
  virtual std::byte* scratch(const void* key, std::size_t bytes) = 0;
};

ESKER_API void combine_positions(Exchange* lanes, std::uint32_t count);
ESKER_API void combine_broadcast(Exchange* lanes, std::uint32_t count);
ESKER_API void combine_nothing(Exchange* lanes, std::uint32_t count);

template <LaneValue T>
void combine_prefix_sum(Exchange* lanes, std::uint32_t count) {
  T sum{0};
  for (std::uint32_t l = 0; l < count; ++l) {
    const T mine = lanes[l].active ? detail::from_word<T>(lanes[l].value) : T{0};
    lanes[l].value = detail::to_word(sum);
    sum = Sum{}(sum, mine);
  }
}

template <LaneValue T, class Op>
void combine_reduce(Exchange* lanes, std::uint32_t count) {
  T result = Op::template identity<T>();
  for (std::uint32_t l = 0; l < count; ++l) {
    if (lanes[l].active) result = Op{}(result, detail::from_word<T>(lanes[l].value));
  }
  for (std::uint32_t l = 0; l < count; ++l) lanes[l].value = detail::to_word(result);
}

inline constexpr Collective kPositions{"position_among", combine_positions};
inline constexpr Collective kBroadcast{"broadcast", combine_broadcast};
inline constexpr Collective kSync{"sync", combine_nothing};
template <LaneValue T>
inline constexpr Collective kPrefixSum{"prefix_sum", combine_prefix_sum<T>};
template <LaneValue T, class Op>
inline constexpr Collective kReduce{Op::kName, combine_reduce<T, Op>};

/// A wave or the whole group. Its methods are for both sides: the host pass of a device compiler checks what
/// a user's own kernel calls, and finds these.
class CollectiveView {
 public:
  CollectiveView(GroupEngine& engine, std::uint32_t lane, std::uint32_t view, std::uint32_t first,
                 std::uint32_t size)
      : engine_{&engine}, lane_{lane}, view_{view}, first_{first}, size_{size} {}

  ESKER_HD std::uint32_t index() const { return lane_ - first_; }
  ESKER_HD std::uint32_t size() const { return size_; }

  ESKER_HD Position position_among(bool flag) { return exchange(kPositions, 0, flag).position; }
  template <LaneValue T>
  ESKER_HD T prefix_sum(T value, bool active = true) {
    return detail::from_word<T>(exchange(kPrefixSum<T>, detail::to_word(value), active).value);
  }
  template <LaneValue T, detail::CheckedLaneOperation<T> Op>
  ESKER_HD T reduce(T value, Op, bool active = true) {
    return detail::from_word<T>(exchange(kReduce<T, Op>, detail::to_word(value), active).value);
  }
  template <LaneValue T>
  ESKER_HD T broadcast(T value, std::uint32_t from) {
    return detail::from_word<T>(exchange(kBroadcast, detail::to_word(value), true, from).value);
  }
  ESKER_HD void sync() { exchange(kSync, 0, true); }

 private:
  Exchange exchange(const Collective& what, std::uint64_t value, bool active, std::uint32_t from = 0) {
    return engine_->exchange(lane_, view_, what, {value, from, active, true, {}});
  }

  GroupEngine* engine_;
  std::uint32_t lane_, view_, first_, size_;
};

template <class T>
inline constexpr char kScratchKey = 0;

}  // namespace cpu

/// A lane that can work with the others of its group.
///
/// Contract. wave() and group() are the views for collectives (see LaneGroup). coalesced() are the
/// lanes of the wave that happen to be converged at the call: any number from 1 to all.
class GroupLane : public Lane {
 public:
  GroupLane(const LaunchShape& shape, std::uint64_t group, std::uint32_t lane, std::uint32_t group_lanes,
            cpu::GroupEngine& engine)
      : Lane(shape, group, lane, group_lanes), engine_{&engine}, wave_lanes_{shape.wave_lanes} {}
  GroupLane(const GroupLane&) = delete;
  GroupLane& operator=(const GroupLane&) = delete;

  ESKER_HD cpu::CollectiveView group() const { return {*engine_, lane(), 0, 0, group_lanes()}; }
  ESKER_HD cpu::CollectiveView wave() const {
    const std::uint32_t wave = lane() / wave_lanes_, first = wave * wave_lanes_;
    const std::uint32_t left = group_lanes() - first;
    return {*engine_, lane(), 1 + wave, first, left < wave_lanes_ ? left : wave_lanes_};
  }
  ESKER_HD LoneLane coalesced() const { return {}; }
  /// Lanes that one of them cannot wait for, since they run in lock step: here it is alone.
  ESKER_HD LoneLane lockstep() const { return {}; }
  ESKER_HD std::uint32_t lockstep_unit() const { return lane(); }

  /// Scratchpad of the group: a zeroed T that all its lanes share.
  /// Collective: every lane of the group calls it once for each T, before the group diverges.
  template <class T>
  ESKER_HD T& scratch() const {
    static_assert(std::is_trivially_destructible_v<T>, "it ends with the group, unannounced");
    return *reinterpret_cast<T*>(engine_->scratch(&cpu::kScratchKey<T>, sizeof(T)));
  }

  /// Gives way once, while this lane waits for something outside its group.
  ESKER_HD void yield() const { engine_->yield(lane()); }

  /// Waits for other lanes of this group to make `ready()` true. `where` names the wait in a report.
  template <class Ready>
  ESKER_HD void await(const char* where, Ready ready) const {
    engine_->await(
        lane(), where, [](void* context) { return (*static_cast<Ready*>(context))(); }, &ready);
  }

 private:
  cpu::GroupEngine* engine_;
  std::uint32_t wave_lanes_;
};

static_assert(LaneGroup<cpu::CollectiveView> && LaneGroup<LoneLane>);

}  // namespace esker
