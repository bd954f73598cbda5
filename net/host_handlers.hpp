// The host's appliers, and completion of what handlers send there: the owner's own worker, or helpers.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include <esker/net/apply_pool.hpp>
#include <esker/net/completion_stage.hpp>
#include <esker/net/device_engine.hpp>
#include <esker/net/frame_applier.hpp>

namespace esker {

/// Contract. The network's owner calls, but for the counters and those that are marked. Where a GPU applies,
///           applier() is unused, and what handlers there send comes by send_on().
class HostHandlers final : public CompletionStage, public ReplySink {
 public:
  HostHandlers(std::uint32_t helpers, const ApplierSettings& settings, const HandlerTable& handlers,
               std::byte* heap_base, BufferSink& sink, ApplyPool::OnError on_error);

  FrameApplier& applier() { return helpers_.helpers() == 0 ? static_cast<FrameApplier&>(inline_) : helpers_; }
  /// A package of what handlers elsewhere have sent.
  void send_on(const PackageView& package);
  void send_replies(std::uint32_t pe, const PackageView& replies) override;
  void send_replies(Buffer* buffer) override;
  /// Ends the helpers. Afterwards nothing is submitted.
  void stop() { helpers_.stop(); }

  /// What handlers, and replies, hold for this PE leaves, full or not. True if there was some.
  bool close_for(std::uint32_t pe);
  /// Any thread: what handlers have sent leaves, full or not. True if there may be some.
  bool request_flush();
  /// Any thread: request_flush() has not been seen to.
  bool was_flush_requested() const { return flush_requested_.load(std::memory_order_relaxed); }
  /// For when nothing moves: closes what is past its time-out; in a call, or if lanes asked for a flush, all
  /// that is for PEs with `may(pe)`. True if there was some.
  template <class May>
  bool close_idle(May may) {
    const bool for_lanes = flush_requested_.exchange(false, std::memory_order_acquire);
    if (for_lanes) helpers_.flush_once();
    return in_call_ || for_lanes ? inline_.worker.close_outbox(may) : inline_.worker.close_stale();
  }

  void begin(const NetworkRequest& call) override;
  /// Quiet: closes what is open now. In a barrier close_idle() does it, when no more comes.
  void flush() override;
  bool flushed() override;
  bool drained() override { return outboxes_empty(); }
  const char* waits_for() const override { return "handlers' messages to leave"; }
  void end(bool all_applied) override;

  // Any thread.
  std::uint64_t applied() const override { return inline_.worker.applier().applied() + helpers_.applied(); }
  std::uint64_t sent() const override { return sent_by_handlers() + sent_on(); }
  std::uint64_t sent_by_handlers() const {
    return inline_.worker.applier().sent_by_handlers() + helpers_.sent_by_handlers();
  }
  std::uint64_t asked() const override {
    return inline_.worker.applier().asked() + helpers_.asked() + asked_on_.load(std::memory_order_relaxed);
  }
  std::uint64_t answered() const override {
    return inline_.worker.applier().answered() + helpers_.answered();
  }
  /// Messages that came by send_on().
  std::uint64_t sent_on() const { return sent_on_.load(std::memory_order_relaxed); }
  /// Racy: the name of a handler that runs just now; "": none.
  std::string was_in_handler() const;

 private:
  /// Applies on the owner's thread, before try_submit() returns.
  struct Inline final : FrameApplier {
    Inline(const ApplierSettings& settings, const HandlerTable& handlers, std::byte* base, BufferSink& sink)
        : worker{settings, handlers, 0, 1, sink}, heap_base{base} {}
    bool try_submit(ApplyJob& job) override {
      worker.apply(job.header, job.frame, {heap_base, job.heap_bytes});
      job.left.store(0, std::memory_order_relaxed);
      return true;
    }
    ApplyWorker worker;
    std::byte* const heap_base;
  };

  bool outboxes_empty() const { return inline_.worker.outbox_empty() && helpers_.outboxes_empty(); }

  BufferSink& sink_;
  Inline inline_;
  ApplyPool helpers_;
  std::atomic<bool> flush_requested_{false};
  std::atomic<std::uint64_t> sent_on_{0};
  std::atomic<std::uint64_t> asked_on_{0};  // of them, requests
  bool in_call_ = false;
  bool in_quiet_ = false;
  std::uint32_t emptied_ = 0;  // helpers whose outbox has been empty since flush()
};

}  // namespace esker
