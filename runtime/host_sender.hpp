// What the program itself sends: node buffers of its own, past the package queue, which lanes fill; or, where
// the heap is in a GPU's memory, kernels that send it, since lanes reach there what the host does not.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include <esker/aggregator/node_buffers.hpp>
#include <esker/net/completion_stage.hpp>
#include <esker/net/network.hpp>
#include <esker/runtime/device_context.hpp>
#include <esker/runtime/producers.hpp>
#include <esker/runtime/program_messages.hpp>
#include <esker/runtime/wait_loop.hpp>

namespace esker {

class LaneExecutor;

/// Contract. The user's thread calls, but for what CompletionStage says of the network's owner.
/// Progress. post() waits where the network has all of its buffers, or a kernel has not ended.
/// Errors.   What the runtime has failed with.
class HostSender final : public CompletionStage {
 public:
  HostSender(const ApplierSettings& settings, LaneExecutor& executor, const detail::KernelContext& context,
             Network& network, WaitLoop& waits, Producers& producers, const Failure& failure);

  /// `count` messages of `width` words: word r of message i is rows[r * count + i].
  void post(Command command, std::uint32_t width, std::uint32_t count, const std::uint64_t* rows);
  /// What has been posted leaves.
  void close();

  void begin(const NetworkRequest& call) override {
    if (call.kind == NetworkRequest::Kind::kBarrier)
      may_send_ |= has_called_.exchange(false, std::memory_order_relaxed);
  }
  // Of what passes the node buffers; what kernels send they count.
  std::uint64_t sent() const override { return sent_.load(std::memory_order_acquire); }
  std::uint64_t asked() const override { return asked_.load(std::memory_order_acquire); }
  bool may_send() const override { return may_send_; }
  void end(bool all_applied) override { may_send_ = may_send_ && !all_applied; }
  const char* waits_for() const override { return "the program's messages to leave"; }

 private:
  bool sends_by_kernels() const;
  void append(const PackageView& messages);
  /// One message, whose word r is words[r * stride].
  void post_to_kernel(Command command, std::uint32_t width, std::uint32_t stride, const std::uint64_t* words);

  LaneExecutor& executor_;
  const detail::KernelContext& context_;
  WaitLoop& waits_;
  Producers& producers_;
  const Failure& failure_;
  BufferPool pool_;
  NodeBuffers buffers_;
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> asked_{0};  // of them, requests
  std::atomic<bool> has_called_{false};  // active messages or requests, since the last barrier
  bool may_send_ = false;                // before the barrier that is served

  std::span<ProgramMessage> half_;  // of the kernels' memory, that is being filled
  std::size_t filled_ = 0;
  bool is_second_half_ = false;

  std::vector<std::uint64_t> gets_;  // of one post(), while some are served
};

}  // namespace esker
