// When everything is applied: serves the user's quiet, barrier_all, gathers and exchanges.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <esker/aggregator/trace.hpp>
#include <esker/net/completion_stage.hpp>
#include <esker/net/failure.hpp>
#include <esker/net/network_request.hpp>
#include <esker/net/transport.hpp>
#include <esker/queue/waiting.hpp>

namespace esker {

/// Mattern's four counters (1987) over a list of stages; docs/design/completion.md says why and what it
/// costs.
///
/// State    idle -> (gather) or (exchange) or (flush -> peers) or (flush -> drain -> gather -> ...) -> idle
/// Contract The network's owner calls step(); post() and the racy observations are for any thread. One
///          request at a time, which stays valid until it is done or the job has failed.
/// Protocol A barrier repeats rounds: all stages are flushed and drained, then PEs gather what they have sent
///          and applied. It ends when all counts are final and the sums over PEs are equal: twice running, or
///          once where no PE may send. PEs in another call than this one end it too; the caller compares.
/// Ordering [request] the user's writes before post()  happen before  the stages' begin().
///          [done] what is applied  happens before  the user's thread sees `done`.
/// Progress step() never waits. After the fourth round of a barrier rounds begin at least kBetweenRounds
/// apart.
class Completion {
 public:
  static constexpr std::uint32_t kPromptRounds = 4;
  static constexpr std::chrono::microseconds kBetweenRounds{500};

  Completion(Transport& transport, const Failure& failure, Doorbell& user_bell, Tracer* tracer);

  /// In the order in which messages flow. Before the first step().
  void set_stages(std::vector<CompletionStage*> stages) { stages_ = std::move(stages); }

  // Any thread.
  void post(NetworkRequest* request) { posted_.store(request, std::memory_order_release); }  // [request]
  bool was_posted() const { return posted_.load(std::memory_order_acquire) != nullptr; }
  /// What a request waits for, for reports; "": there is none.
  std::string was_waiting_for() const { return doing_.load(std::memory_order_relaxed); }

  // The owner.
  /// True if something moved.
  bool step();
  bool is_active() const { return active_ != nullptr; }
  /// A quiet or a barrier is served: what stages hold should leave.
  bool is_flushing() const {
    return is_active() &&
           (active_->kind == NetworkRequest::Kind::kQuiet || active_->kind == NetworkRequest::Kind::kBarrier);
  }

 private:
  enum class Phase { kFlush, kPeers, kDrain, kGather, kExchange };
  struct Sums {
    std::uint64_t applied = 0;
    std::uint64_t sent = 0;
    bool may_send = false;
    bool final = true;
    bool equal() const { return final && applied == sent; }
  };

  bool begin();
  bool flush();
  bool has_replies();
  bool drain();
  bool gather();
  void start_over();
  void count();
  bool is_same_call() const;
  Sums sums() const;
  void complete(bool all_applied);
  void now_waits_for(const char* what);  // a literal; "": nothing

  Transport& transport_;
  const Failure& failure_;
  Doorbell& user_bell_;
  Tracer* const tracer_;
  std::vector<CompletionStage*> stages_;
  std::atomic<NetworkRequest*> posted_{nullptr};  // [request] release by post() / acquire by the owner
  std::atomic<const char*> doing_{""};
  std::int64_t doing_since_ns_ = 0;  // while tracing

  NetworkRequest* active_ = nullptr;
  Phase phase_ = Phase::kFlush;
  std::size_t flushing_ = 0;  // the first stage that is not flushed
  std::uint32_t rounds_ = 0;  // of this barrier, that have been gathered
  Sums last_;                 // of the last round
  bool was_equal_ = false;    // in the last round
  std::chrono::steady_clock::time_point next_round_;
  std::vector<GatherBlock> blocks_;
};

}  // namespace esker
