// Completion beside a GPU: kernels, progress kernels, frames on the device, peers' mailboxes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include <esker/net/acknowledgements.hpp>
#include <esker/net/completion_stage.hpp>
#include <esker/net/control.hpp>
#include <esker/net/device_engine.hpp>
#include <esker/net/frame_applier.hpp>
#include <esker/net/host_handlers.hpp>

namespace esker {

/// Asks the engine for progress kernels when there is reason to, and knows what their ends prove.
///
/// Contract. The network's owner calls, but for the counters and was_working(). It is the first of the
///           stages. What handlers on the GPU send to PEs that it does not reach goes to `handlers`.
/// Protocol. A barrier's first round is the rendezvous: the stage is flushed once this PE's kernels have
///           ended, and its counts are not final. In later rounds, and in a quiet, it is flushed once a
///           progress kernel has ended that began after that. A PE whose lanes wait for space in peers'
///           mailboxes, or which first sends active messages since the last barrier, tells the peers by
///           kDrainRequest; its value is that of called_before_.
class DeviceStage final : public CompletionStage, public FrameApplier {
 public:
  /// `applies`: the heap is in the GPU's memory.
  DeviceStage(DeviceEngine& engine, bool applies, HostHandlers& handlers, Control& control);

  bool try_submit(ApplyJob& job) override;

  bool step() override;
  void begin(const NetworkRequest& call) override;
  bool flushed() override;
  bool drained() override { return !applies_ || !to_send_on_.was_full(to_send_on_.was_head()); }
  void start_over() override;
  const char* waits_for() const override {
    return ended_ ? "the GPU to apply what has arrived" : "kernels on the GPU";
  }
  std::uint64_t applied() const override { return engine_.traffic().applied; }
  std::uint64_t sent() const override { return engine_.traffic().sent; }
  std::uint64_t asked() const override { return engine_.traffic().asked; }
  std::uint64_t answered() const override { return engine_.traffic().answered; }
  bool may_send() const override { return engine_.has_called_handlers(); }
  bool is_final() const override { return !rendezvous_; }
  void ask_peers() override;
  bool have_peers_applied() override;
  void heard_may_send() override;
  void end(bool all_applied) override;
  std::chrono::microseconds longest_nap(bool in_call) const override;
  bool was_working() const override;

 private:
  /// Messages for handlers may be about, as far as this PE knows.
  bool handlers_called() const { return called_before_ > barriers_; }
  void request_drains();
  bool wants_progress();
  /// Takes up to `most` packages of progress kernels. True if there was one.
  bool send_on(std::uint32_t most);

  DeviceEngine& engine_;
  const bool applies_;
  HostHandlers& handlers_;
  Control& control_;
  PackageQueue to_send_on_;            // from handlers on the GPU
  Acknowledgements replies_;           // of messages that do not pass the host
  std::vector<std::uint64_t> target_;  // of a quiet, by link
  bool drain_requested_ = false;       // by a peer, or lanes here
  std::uint64_t barriers_ = 0;         // that have ended
  std::uint64_t called_before_ = 0;    // the number of a barrier: active messages were sent before it

  bool in_call_ = false;
  bool in_quiet_ = false;
  bool rendezvous_ = false;     // this round: others' kernels may still run
  bool ended_ = false;          // the kernels, since the call; none is started meanwhile
  std::uint64_t progress_ = 0;  // progress kernels that had been started then
  std::chrono::steady_clock::time_point next_early_progress_;
  std::atomic<bool> waits_for_kernels_{false};
  std::atomic<std::int64_t> starved_ns_{0};  // when lanes last said that they wait for space
};

}  // namespace esker
