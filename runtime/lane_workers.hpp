// The host threads that run lanes on the CPU back end.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <esker/device/cpu/thread_team.hpp>
#include <esker/runtime/host_worker.hpp>

namespace esker {

/// A team of threads whose members send: each has an outbox.
class LaneWorkers {
 public:
  using Function = detail::GroupFunction;

  LaneWorkers(std::uint32_t threads, const detail::KernelContext& context, const std::string& thread_name);

  /// Runs `function` over groups [0, groups) in chunks and publishes what lanes have sent; see
  /// cpu::ThreadTeam::run(). Throws the first exception of a lane.
  void run(std::uint64_t groups, const detail::GroupFunction& function, const std::function<bool()>& between,
           const char* name = "kernel");

  /// Of the launch that has thrown last: the lane that threw; nothing where none did.
  const std::optional<cpu::ThrowingLane>& throwing_lane() const { return team_.throwing_lane(); }
  /// Chunks finished so far, for the hang report.
  std::uint64_t chunks_done() const { return team_.chunks_done(); }

 private:
  std::vector<detail::HostWorker> workers_;  // by member
  cpu::ThreadTeam team_;
};

}  // namespace esker
