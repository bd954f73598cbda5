// What the runtime watches: peers that die, hangs, and what PEs say of themselves in one.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <esker/aggregator/aggregator.hpp>
#include <esker/config.hpp>
#include <esker/net/failure.hpp>
#include <esker/net/network.hpp>
#include <esker/queue/package_queue.hpp>
#include <esker/queue/waiting.hpp>
#include <esker/runtime/collectives.hpp>
#include <esker/runtime/current_call.hpp>
#include <esker/runtime/hang_inquiry.hpp>
#include <esker/runtime/hang_watch.hpp>
#include <esker/runtime/job_shape.hpp>
#include <esker/runtime/lane_executor.hpp>
#include <esker/runtime/lane_workers.hpp>
#include <esker/runtime/network_owner.hpp>
#include <esker/runtime/producers.hpp>
#include <esker/runtime/trace_file.hpp>
#include <esker/runtime/wait_loop.hpp>

namespace esker {

/// Contract. The network's owner calls poll() a few times a second, and is told what peers say. Threads that
///           nap in a wait call check_for_hang(), since an owner that hangs itself polls nothing.
/// Errors.   A peer's death becomes the job's failure. A hang ends the process with status 1, after reports
///           on stderr and as JSON on every PE; docs/guide/troubleshooting.md explains them.
class Supervision final : public Supervisor {
 public:
  /// The parts that it observes. They outlive it.
  struct Watched {
    const Config& config;
    const JobShape& job;
    Failure& failure;
    Doorbell& user_bell;
    NetworkOwner& owner;
    Network& network;
    const Aggregators& aggregators;
    const LaneWorkers& workers;
    const LaneExecutor& executor;
    const PackageQueue& queue;
    const LaneCounters& lanes;
    Producers& producers;
    const CurrentCall& call;
    const Collectives& collectives;
    const WaitLoop& waits;
    TraceFile& trace;
  };
  explicit Supervision(const Watched& watched);

  void poll();
  void check_for_hang();

  void heard_hang_report(std::uint32_t pe, std::uint64_t sent_by_it) override;
  void heard_question(std::uint32_t pe) override;
  void heard_answer(std::uint32_t pe, std::uint64_t value, std::string_view text) override;

 private:
  using Clock = std::chrono::steady_clock;

  void poll_peers();
  void poll_for_hang(Clock::time_point now);
  void end_hanging();
  void report_hang(const std::string& headline, bool network_stuck = false);
  void broadcast_hang_report();
  PeStatus status(Clock::time_point now);  // without the words
  std::string doing() const;
  StageSnapshot snapshot() const;
  std::uint64_t activity() const;
  bool lanes_wait() const { return w_.waits.lanes_waiting() > 0 || group_lanes_wait_; }
  std::chrono::milliseconds hang_limit() const { return std::chrono::seconds{w_.config.hang_seconds}; }

  const Watched w_;
  HangWatch hang_;   // watches messages and calls
  HangWatch stuck_;  // watches the network's owner
  std::atomic<bool> hang_reported_{false};

  // The network owner's.
  HangInquiry inquiry_;
  Clock::time_point next_peer_poll_;
  bool found_dead_peer_ = false;
  bool group_lanes_wait_ = false;  // lanes of groups have waited for space between the last two polls
  bool hang_broadcast_ = false;
};

}  // namespace esker
