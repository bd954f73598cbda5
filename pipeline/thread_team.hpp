// A host thread that serves a stage: a team of one lane.
#pragma once

#include <chrono>
#include <cstdint>

#include <esker/device/lane_group.hpp>
#include <esker/queue/waiting.hpp>

namespace esker::pipeline::detail {

class ThreadTeam {
 public:
  static constexpr bool kIsThread = true;

  explicit ThreadTeam(Doorbell& bell, std::uint32_t yields) : bell_{bell}, backoff_{kLongestNap, yields} {}

  std::uint32_t lane() const { return 0; }
  std::uint32_t lanes() const { return 1; }
  void sync() const {}
  template <class Function>
  void leader(Function&& function) const {
    function();
  }
  template <class Function>
  std::uint64_t of_leader(Function&& function) const {
    return function();
  }
  /// Any lane of the team has raised its flag.
  bool any(bool flag) const { return flag; }
  static LoneLane converged() { return {}; }

  /// Something that others may wait for has changed.
  void ring() const { bell_.ring(); }
  void has_worked() { backoff_.reset(); }
  /// Until ready() holds, or over() does: false.
  template <class Ready, class Over>
  bool wait(const Ready& ready, const Over& over) {
    if (ready()) return true;
    Backoff backoff(kLongestNap, Backoff::kYields);
    while (!ready()) {
      if (over()) return false;
      backoff.wait(bell_, ready);
    }
    return true;
  }
  /// Once, while it has nothing to do.
  template <class Ready>
  void idle(const Ready& ready) {
    backoff_.wait(bell_, ready);
  }
  static std::uint64_t now_ns() {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                          std::chrono::steady_clock::now().time_since_epoch())
                                          .count());
  }
  /// The clock that `born_ns` of frames is by.
  static std::uint64_t birth_ns() { return now_ns(); }

 private:
  static constexpr std::chrono::microseconds kLongestNap{500};

  Doorbell& bell_;
  Backoff backoff_;
};

}  // namespace esker::pipeline::detail
