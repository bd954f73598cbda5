// A team of which one lane works.
#pragma once

#include <cstdint>

#include <esker/device/lane_group.hpp>
#include <esker/device/platform.hpp>

namespace esker::pipeline::detail {

ESKER_PASS_BEGIN

/// One lane of a team, on its own: for what a stage does at its end.
template <class Team>
class OneLane {
 public:
  static constexpr bool kIsAtEnd = true;
  static constexpr bool kIsThread = Team::kIsThread;

  ESKER_HD explicit OneLane(Team& team) : team_{team} {}
  ESKER_HD std::uint32_t lane() const { return 0; }
  ESKER_HD std::uint32_t lanes() const { return 1; }
  ESKER_HD void sync() const {}
  template <class Function>
  ESKER_HD void leader(Function&& function) const {
    function();
  }
  template <class Function>
  ESKER_HD std::uint64_t of_leader(Function&& function) const {
    return function();
  }
  ESKER_HD static LoneLane converged() { return {}; }
  ESKER_HD void ring() const { team_.ring(); }
  template <class Ready, class Over>
  ESKER_HD bool wait(const Ready& ready, const Over& over) {
    return team_.wait(ready, over);
  }
  ESKER_HD static std::uint64_t now_ns() { return Team::now_ns(); }
  ESKER_HD static std::uint64_t birth_ns() { return Team::birth_ns(); }

 private:
  Team& team_;
};

ESKER_PASS_END

}  // namespace esker::pipeline::detail
