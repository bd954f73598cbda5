// What the program itself sends: node buffers of its own, past the package queue, which lanes fill.
#pragma once

#include <atomic>
#include <cstdint>

#include <esker/aggregator/node_buffers.hpp>
#include <esker/net/completion_stage.hpp>
#include <esker/net/network.hpp>
#include <esker/runtime/wait_loop.hpp>

namespace esker {

/// Contract. The user's thread calls, but for what CompletionStage says of the network's owner.
/// Progress. post() waits where the network has all of its buffers.
/// Errors.   What the runtime has failed with.
class HostSender final : public CompletionStage {
 public:
  HostSender(const ApplierSettings& settings, Network& network, WaitLoop& waits, const Failure& failure)
      : pool_{settings.buffer_bytes, settings.buffers},
        buffers_{settings.pe, settings.n_pes, pool_, OnExhausted::kPushBack, network, settings.tracer},
        waits_{waits},
        failure_{failure} {}

  void post(Command command, std::uint32_t width, const std::uint64_t* words);
  /// What has been posted leaves.
  void close() { buffers_.close(); }

  void begin(const NetworkRequest& call) override {
    if (call.kind == NetworkRequest::Kind::kBarrier)
      may_send_ = has_called_.exchange(false, std::memory_order_relaxed);
  }
  std::uint64_t sent() const override { return sent_.load(std::memory_order_acquire); }
  std::uint64_t asked() const override { return asked_.load(std::memory_order_acquire); }
  bool may_send() const override { return may_send_; }
  const char* waits_for() const override { return "the program's messages to leave"; }

 private:
  BufferPool pool_;
  NodeBuffers buffers_;
  WaitLoop& waits_;
  const Failure& failure_;
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> asked_{0};  // of them, requests
  std::atomic<bool> has_called_{false};  // active messages or requests, since the last barrier
  bool may_send_ = false;                // of the barrier that is served
};

}  // namespace esker
