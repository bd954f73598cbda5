// Completion of what lanes send through the package queue: the aggregators.
#pragma once

#include <atomic>
#include <cstdint>

#include <esker/aggregator/aggregator.hpp>
#include <esker/net/completion_stage.hpp>

namespace esker {

/// Contract. Calls complete only while no lanes on the host run: they are the same thread's.
class LaneStage final : public CompletionStage {
 public:
  /// `published`: messages of lanes so far. `call_handlers`: lanes have sent active messages; a barrier
  /// clears it. `waiting`: lanes of the host that are blocked.
  LaneStage(Aggregators& aggregators, const std::atomic<std::uint64_t>& published,
            std::atomic<bool>& call_handlers, std::atomic<std::uint32_t>& waiting)
      : aggregators_{aggregators}, published_{published}, call_handlers_{call_handlers}, waiting_{waiting} {}

  void begin(const NetworkRequest& call) override {
    epoch_ = call.flush_epoch;
    if (call.kind == NetworkRequest::Kind::kBarrier)
      may_send_ |= call_handlers_.exchange(false, std::memory_order_relaxed);
  }
  void flush() override { epoch_ = aggregators_.request_flush(); }
  bool flushed() override { return aggregators_.flushed(epoch_); }
  const char* waits_for() const override { return "the aggregators to close their buffers"; }
  std::uint64_t sent() const override { return published_.load(std::memory_order_acquire); }
  std::uint64_t asked() const override { return aggregators_.asked(); }
  bool may_send() const override { return may_send_; }
  void end(bool all_applied) override { may_send_ = may_send_ && !all_applied; }

  /// Buffers are in the pools again.
  void ring() { aggregators_.ring(); }
  /// An aggregator, or a lane of the host, has seen none there.
  bool aggregators_wait() { return aggregators_.wait_for_buffers(); }
  bool lanes_wait() const { return waiting_.fetch_add(0, std::memory_order_acq_rel) != 0; }  // [blocked]

 private:
  Aggregators& aggregators_;
  const std::atomic<std::uint64_t>& published_;
  std::atomic<bool>& call_handlers_;
  std::atomic<std::uint32_t>& waiting_;
  std::uint64_t epoch_ = 0;
  bool may_send_ = false;  // before the barrier that is served
};

}  // namespace esker
