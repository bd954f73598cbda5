// A host thread that serves a stage: a team of one lane.
#pragma once

#include <chrono>
#include <cstdint>

#include <esker/device/lane_group.hpp>
#include <esker/queue/waiting.hpp>

namespace esker::pipeline::detail {

// What a host thread waits for may be a GPU's, which rings no bell.
inline std::chrono::microseconds longest_nap(bool has_gpu) {
  return std::chrono::microseconds{has_gpu ? 50 : 1000};
}
inline std::uint32_t yields(bool has_gpu) {
  return has_gpu ? Backoff::kYieldsBesideADevice : Backoff::kYields;
}

class ThreadTeam {
 public:
  static constexpr bool kIsThread = true;

  ThreadTeam(Doorbell& bell, bool has_gpu) : bell_{bell}, has_gpu_{has_gpu} {}

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
  static LoneLane lockstep() { return {}; }
  template <class Add>
  std::uint64_t reserve_by_status(std::uint32_t, std::uint32_t n, const Add& add) const {
    return add(n);
  }

  /// Something that others may wait for has changed.
  void ring() const { bell_.ring(); }
  /// Until ready() holds, or over() does: false.
  template <class Ready, class Over>
  bool wait(const Ready& ready, const Over& over) {
    if (ready()) return true;
    Backoff backoff(longest_nap(has_gpu_), yields(has_gpu_));
    while (!ready()) {
      if (over()) return false;
      backoff.wait(bell_, ready);
    }
    return true;
  }
  static std::uint64_t now_ns() {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                          std::chrono::steady_clock::now().time_since_epoch())
                                          .count());
  }
  /// The clock that `born_ns` of frames is by.
  static std::uint64_t birth_ns() { return now_ns(); }

 private:
  Doorbell& bell_;
  const bool has_gpu_;
};

}  // namespace esker::pipeline::detail
