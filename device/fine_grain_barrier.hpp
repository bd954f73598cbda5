// A barrier of those lanes of a group that have joined it (HSA's fbar in software; thesis, section 5.6.2).
#pragma once

#include <cstdint>
#include <esker/device/atomic.hpp>
#include <esker/device/group.hpp>
#include <esker/device/lane_group.hpp>

namespace esker {

/// Scratchpad of one barrier, zeroed: lane.scratch<FineGrainState<>>(). Several in one kernel are
/// members of one scratch struct.
template <std::uint32_t MaxLanes = 256>
struct FineGrainState {
  GroupAtomic<std::uint64_t> word;             // phase:32 | units arrived:16 | units that are members:16
  GroupAtomic<std::uint32_t> lanes[MaxLanes];  // member lanes of each unit
  // What each lane has handed in, by phase: a lane may hand in to p + 1 while others read p.
  std::uint64_t words[2][MaxLanes];
  std::uint32_t tags[2][MaxLanes];  // 2 * (phase + 1) + active
};

ESKER_PASS_BEGIN

/// The members of a fine-grain barrier as a LaneGroup: a collective in divergent code without
/// predication (Table 5-1c).
///
/// Contract. join() and leave() are any lane's own; the rest is collective over the members, and the
/// members of one wave call it converged, at the same barrier. To start with all lanes, each joins and
/// then the group syncs. A lane leaves before it returns from the kernel.
///
/// Members are counted by units of lanes that run in lock step (lockstep_unit(): a wave on AMD, a lane on
/// the CPU and where the hardware schedules lanes independently). A unit is a member while one of its lanes
/// is, and it has arrived when those of its lanes that run have. So lanes whose loop has ended, and which the
/// hardware holds at the end of the loop until the rest of their wave comes there too, keep nobody waiting:
/// what HSA's fbar does, and the thesis's loop (Table 5-1c) needs.
///
/// Protocol. The thesis keeps MemberCnt, ArriveCnt and sense in three words and needs a second barrier
/// for units that leave while others arrive. Here the three stand in one word, so an arrival, a join and
/// a leave happen one after the other, and the one that makes arrived == members starts the next phase.
///
/// Ordering. [meet] accesses before wait() happen before accesses after it, in every member: each
/// arrival and leave is an acq_rel step of `word`, and a waiting unit's leader acquires the last of the
/// phase, between two syncs of its crew.
///
/// Progress. One lane of a crew waits; the others stand at its sync, so they go on together.
template <std::uint32_t MaxLanes = 256>
class FineGrainBarrier {
  using State = FineGrainState<MaxLanes>;

 public:
  /// Requires lane.group_lanes() <= MaxLanes.
  ESKER_HD FineGrainBarrier(GroupLane& lane, State& state) : lane_{lane}, state_{state} {}

  ESKER_HD void join() {
    auto active = lane_.lockstep();
    const Position mine = active.position_among(true);
    if (mine.index + 1 == mine.total && members_of_unit().fetch_add_acq_rel(mine.total) == 0) step(1, 0);
    active.sync();
  }
  ESKER_HD void leave() {
    auto active = lane_.lockstep();
    const Position mine = active.position_among(true);
    active.sync();
    if (mine.index + 1 == mine.total) {
      const std::uint32_t before = members_of_unit().fetch_add_acq_rel(0 - mine.total);
      if (before == mine.total) step(-1, 0);
    }
    active.sync();
  }
  ESKER_HD void wait() {
    auto active = lane_.lockstep();
    const Position mine = active.position_among(true);
    active.sync();
    if (mine.index + 1 == mine.total) {
      const std::uint32_t phase = this->phase();  // it cannot end without this unit
      step(0, 1);
      State& state = state_;
      lane_.await("fine-grain barrier",
                  [&] { return phase_of(state.word.load_acquire()) != phase; });  // [meet]
    }
    active.sync();
  }

  ESKER_HD std::uint32_t index() const { return lane_.lane(); }
  ESKER_HD std::uint32_t size() const { return lane_.group_lanes(); }
  ESKER_HD void sync() { wait(); }

  ESKER_HD Position position_among(bool flag) {
    Position all{0, 0, 0};
    for_each_active(0, flag, [&](std::uint32_t lane, std::uint64_t) {
      if (lane < index()) ++all.index;
      ++all.total;
      all.last = lane;
    });
    return all;
  }
  template <LaneValue T>
  ESKER_HD T prefix_sum(T value, bool active = true) {
    T sum{0};
    for_each_active(detail::to_word(value), active, [&](std::uint32_t lane, std::uint64_t word) {
      if (lane < index()) sum = Sum{}(sum, detail::from_word<T>(word));
    });
    return sum;
  }
  template <LaneValue T, detail::CheckedLaneOperation<T> Op>
  ESKER_HD T reduce(T value, Op op, bool active = true) {
    T result = Op::template identity<T>();
    for_each_active(detail::to_word(value), active, [&](std::uint32_t, std::uint64_t word) {
      result = op(result, detail::from_word<T>(word));
    });
    return result;
  }
  template <LaneValue T>
  ESKER_HD T broadcast(T value, std::uint32_t from) {
    hand_in(detail::to_word(value), true);
    return detail::from_word<T>(state_.words[read_phase_ % 2][from]);
  }

 private:
  static constexpr std::uint64_t kMember = 1, kArrived = std::uint64_t{1} << 16,
                                 kPhase = std::uint64_t{1} << 32;
  static constexpr std::uint64_t kCount = 0xffff;

  ESKER_HD static std::uint32_t phase_of(std::uint64_t word) {
    return static_cast<std::uint32_t>(word >> 32);
  }
  ESKER_HD std::uint32_t phase() const { return phase_of(state_.word.load_relaxed()); }

  ESKER_HD GroupAtomic<std::uint32_t>& members_of_unit() { return state_.lanes[lane_.lockstep_unit()]; }

  /// One step of a unit: what it adds to the members and to those that have arrived.
  ESKER_HD void step(std::int32_t members, std::uint32_t arrived) {
    std::uint64_t seen = state_.word.load_relaxed();
    std::uint64_t next = 0;
    do {
      const std::uint64_t all = (seen & kCount) + (members > 0 ? 1 : 0) - (members < 0 ? 1 : 0);
      const std::uint64_t here = ((seen / kArrived) & kCount) + arrived;
      const bool ends = here > 0 && here == all;
      const std::uint64_t phase = (seen / kPhase + (ends ? 1 : 0)) * kPhase;  // wraps with the word
      next = phase + (ends ? 0 : here * kArrived) + all * kMember;
    } while (!state_.word.compare_exchange_acq_rel(seen, next));  // [meet]
  }

  /// Hands in a word and waits for the others'.
  ESKER_HD void hand_in(std::uint64_t word, bool active) {
    read_phase_ = phase();
    state_.words[read_phase_ % 2][index()] = word;
    state_.tags[read_phase_ % 2][index()] = 2 * (read_phase_ + 1) + (active ? 1 : 0);
    wait();
  }
  template <class Visit>
  ESKER_HD void for_each_active(std::uint64_t word, bool active, Visit visit) {
    hand_in(word, active);
    for (std::uint32_t lane = 0; lane < size(); ++lane) {
      if (state_.tags[read_phase_ % 2][lane] == 2 * (read_phase_ + 1) + 1) {
        visit(lane, state_.words[read_phase_ % 2][lane]);
      }
    }
  }

  GroupLane& lane_;
  State& state_;
  std::uint32_t read_phase_ = 0;
};

ESKER_PASS_END

}  // namespace esker
