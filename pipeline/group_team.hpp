// A group of a GPU that serves a stage.
#pragma once

#include <cstdint>

#include <esker/device/group.hpp>
#include <esker/device/platform.hpp>
#include <esker/pipeline/election.hpp>

#if !defined(ESKER_ON_CPU)

namespace esker::pipeline::detail {

ESKER_PASS_BEGIN

class GroupTeam {
 public:
  static constexpr bool kIsThread = false;

  ESKER_HD explicit GroupTeam(GroupLane& lane) : lane_{lane} {}

  ESKER_HD std::uint32_t lane() const { return lane_.lane(); }
  ESKER_HD std::uint32_t lanes() const { return lane_.group_lanes(); }
  ESKER_HD void sync() const { lane_.group().sync(); }
  /// One lane calls, between two sync().
  template <class Function>
  ESKER_HD void leader(Function&& function) const {
    sync();
    if (lane() == 0) function();
    sync();
  }
  /// All get what it returns. What the leader has seen happens before what they read next.
  template <class Function>
  ESKER_HD std::uint64_t of_leader(Function&& function) const {
    sync();
    std::uint64_t value = 0;
    if (lane() == 0) value = function();
    return lane_.group().broadcast(value, 0);
  }
  /// Any lane of the team has raised its flag. A sync().
  ESKER_HD bool any(bool flag) const { return lane_.group().position_among(flag).total != 0; }
  ESKER_ALWAYS_INLINE ESKER_HD static auto converged() { return GroupLane::coalesced(); }
  ESKER_HD auto lockstep() const { return lane_.lockstep(); }
  /// Of a wave's lanes that are converged one: with other waves of the group. The kernel has made the words.
  template <class Add>
  ESKER_HD std::uint64_t reserve_by_status(std::uint32_t counter, std::uint32_t n, const Add& add) const {
    return GroupLane::scratch_of<GroupStatusWords>().reserve(GroupLane::wave_of(lane()), counter, n, add,
                                                             [] { Lane::yield_awake(); });
  }

  /// In scratchpad.
  template <class T>
  ESKER_HD T& shared() const {
    return lane_.template scratch<T>();
  }
  ESKER_HD void ring() const {}
  ESKER_HD void has_worked() { naps_ = 1; }
  /// Any lane calls, in any branch.
  template <class Ready, class Over>
  ESKER_HD bool wait(const Ready& ready, const Over& over) const {
    while (!ready()) {
      if (over()) return false;
      Lane::yield_awake();
    }
    return true;
  }
  /// One lane calls. The more teams poll, the longer their naps: their polls share the bus with frames. Few
  /// do not nap.
  ESKER_HD void idle(std::uint32_t teams) {
    if (teams < kTeamsANap && !esker::detail::kLanesUseHostCores) return;
    for (std::uint32_t i = 0; i < naps_; ++i) Lane::yield();
    if (naps_ < kMostNaps && naps_ * kTeamsANap < teams) naps_ *= 2;
  }
  ESKER_HD static std::uint64_t now_ns() { return Lane::clock_ns(); }
  ESKER_HD static std::uint64_t birth_ns() { return 0; }  // the host has another clock

 private:
  static constexpr std::uint32_t kMostNaps = 16, kTeamsANap = 16;

  GroupLane& lane_;
  std::uint32_t naps_ = 1;
};

ESKER_PASS_END

}  // namespace esker::pipeline::detail

#endif
