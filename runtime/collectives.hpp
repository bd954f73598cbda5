// The calls in which PEs come together: gathers, exchanges, barriers; and quiet, which is this PE's alone.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <esker/aggregator/aggregator.hpp>
#include <esker/device/error.hpp>
#include <esker/net/network.hpp>
#include <esker/net/network_request.hpp>
#include <esker/runtime.hpp>
#include <esker/runtime/current_call.hpp>
#include <esker/runtime/host_sender.hpp>
#include <esker/runtime/job_shape.hpp>
#include <esker/runtime/wait_loop.hpp>

namespace esker {

/// What a gather is for, so that PEs in different calls notice.
enum class Collective : std::uint32_t {
  kStart = 1,
  kAllocate,
  kFree,
  kRegister,
  kBarrier,
  kEnd,
  kSync,
  kBroadcast,
  kGather,
  kAllGather,
  kScatter,
  kReduce,
  kAllReduce,
  kScan,
  kAllToAll,
  kSort,
};
const char* to_string(Collective collective);

/// How long a PE that leaves by an exception waits for the others, and they for its reason.
inline constexpr std::chrono::seconds kPartingPatience{2};

/// Contract. The user's thread; all but quiet() collective and in the same order on every PE.
/// Errors.   Error{kContract} on every PE if they are in different calls; what the runtime has failed with.
class Collectives {
 public:
  using Values = std::array<std::uint64_t, 6>;

  Collectives(const JobShape& job, CurrentCall& call, Aggregators& aggregators, HostSender& sender,
              Network& network, WaitLoop& waits)
      : job_{job},
        call_{call},
        aggregators_{aggregators},
        sender_{sender},
        network_{network},
        waits_{waits} {}

  /// Every message that this PE has sent is applied. Local.
  void quiet();
  /// Until `ready()`, which messages that arrive make true. Local. `what` is for reports. Where a GPU
  /// applies, they are applied by quiet()s between its calls.
  void wait_for(const char* what, const std::function<bool()>& ready, bool on_device);
  /// Every message that any PE has sent is applied. `leaves`: by an exception, so that peers in other calls
  /// need not wonder about the order of theirs.
  void barrier(Collective collective, bool leaves = false);
  /// Every PE's values.
  std::vector<GatherBlock> gather(Collective collective, const Values& values);
  /// Bytes, once a gather has shown that all PEs are in this call and mean the same.
  void exchange(Collective collective, std::shared_ptr<Exchange> exchange);
  /// What this PE's part of a call has thrown where others wait for it: they all throw it.
  void fail(const Error& error) { network_.fail(error); }
  CurrentCall& call() { return call_; }

  /// Any thread, racy: the user's thread waits for others.
  bool was_waiting() const { return waiting_.load(std::memory_order_relaxed); }

 private:
  void new_request(NetworkRequest::Kind kind, const char* call);
  GatherBlock new_block(Collective collective);
  void serve();
  void serve_quiet();
  void require_same_call();

  const JobShape job_;
  CurrentCall& call_;
  Aggregators& aggregators_;
  HostSender& sender_;
  Network& network_;
  WaitLoop& waits_;
  // A member: a call that gives up leaves it behind for the network's owner to drop.
  NetworkRequest request_{};
  std::uint32_t calls_ = 0;  // collective ones
  std::atomic<bool> waiting_{false};
};

}  // namespace esker
