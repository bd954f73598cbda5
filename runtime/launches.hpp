// Launches: lanes on this PE's host threads, and the bookkeeping around kernels on a GPU.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include <esker/aggregator/aggregator.hpp>
#include <esker/aggregator/trace.hpp>
#include <esker/config.hpp>
#include <esker/device/launch.hpp>
#include <esker/net/failure.hpp>
#include <esker/runtime/current_call.hpp>
#include <esker/runtime/host_sender.hpp>
#include <esker/runtime/job_shape.hpp>
#include <esker/runtime/lane_executor.hpp>
#include <esker/runtime/lane_workers.hpp>
#include <esker/runtime/network_owner.hpp>

namespace esker {

/// Threads that may run lanes: Config::cpu_threads, or the cores that this PE was bound to; where it was not,
/// its part of all.
std::uint32_t lane_threads(const Config& config, const JobShape& job);

/// Contract. The user's thread, and none of its lanes.
/// Errors.   Error{kKernel} for what a lane has thrown, with that nested in it; an Error keeps its kind.
class Launches {
 public:
  Launches(LaneWorkers& workers, LaneExecutor& executor, CurrentCall& call, Aggregators& aggregators,
           HostSender& sender, NetworkOwner& owner, const Failure& failure, Tracer* tracer)
      : workers_{workers},
        executor_{executor},
        call_{call},
        aggregators_{aggregators},
        sender_{sender},
        owner_{owner},
        failure_{failure},
        tracer_{tracer} {}

  /// On the host; returns when all lanes have run.
  void run_groups(const LaunchShape& shape, const char* name, const LaneWorkers::Function& function);

  /// Around a kernel on a GPU: it follows on the stream that is returned / it has been started, with what
  /// went wrong or "".
  void* begin(const char* name);
  void end(const std::string& error);

 private:
  [[noreturn]] void throw_with_kernel(const char* kernel);

  LaneWorkers& workers_;
  LaneExecutor& executor_;
  CurrentCall& call_;
  Aggregators& aggregators_;
  HostSender& sender_;
  NetworkOwner& owner_;
  const Failure& failure_;
  Tracer* const tracer_;
  std::optional<TraceSpan> launching_;         // between begin() and end()
  std::atomic<const char*> running_{nullptr};  // kernel, in run_groups()
};

}  // namespace esker
