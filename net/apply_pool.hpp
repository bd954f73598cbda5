// Helpers of the network thread: each applies the messages of its own slice of the heap.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <esker/aggregator/buffer.hpp>
#include <esker/aggregator/node_buffers.hpp>
#include <esker/net/apply.hpp>
#include <esker/net/failure.hpp>
#include <esker/net/frame_applier.hpp>
#include <esker/queue/spsc_queue.hpp>
#include <esker/queue/waiting.hpp>

namespace esker {

struct ApplierSettings {
  std::uint32_t pe;
  std::uint32_t n_pes;  // destinations
  std::uint32_t buffer_bytes;
  std::uint32_t buffers;  // in each applier's pool for messages of handlers
  std::chrono::nanoseconds timeout;
  Tracer* tracer = nullptr;
};

/// One applier with what its handlers send through.
class ApplyWorker {
 public:
  ApplyWorker(const ApplierSettings& settings, const HandlerTable& handlers, std::uint32_t slice,
              std::uint32_t slices, BufferSink& sink);

  void apply(const wire::FrameHeader& header, const std::byte* frame, HeapView heap);
  /// Sends what handlers elsewhere, on a GPU, have sent.
  void send(const PackageView& package);
  /// The same of messages that all go to one PE.
  void send_to_one(std::uint32_t pe, const PackageView& package);
  /// Closes what handlers have sent: what goes to those PEs for which `may(pe)`, or what is past its
  /// time-out. True if there was some.
  template <class May>
  bool close_outbox(May may) {
    const bool closed = outbox_.close_where(may);
    was_open_.store(outbox_.open_buffers(), std::memory_order_release);
    return closed;
  }
  bool close_outbox() {
    return close_outbox([](std::uint32_t) { return true; });
  }
  bool close_stale();
  bool outbox_empty() const { return was_open_.load(std::memory_order_acquire) == 0; }
  const Applier& applier() const { return applier_; }

 private:
  const ApplierSettings settings_;
  const bool is_first_slice_;
  BufferPool pool_;
  NodeBuffers outbox_;
  Applier applier_;
  std::atomic<std::uint32_t> was_open_{0};
};

/// Helper threads, none or more.
///
/// Contract. The network's owner submits, in order. A helper that has thrown counts later jobs as done.
/// Errors.   What a helper throws goes to `on_error`.
class ApplyPool final : public FrameApplier {
 public:
  using OnError = std::function<void(const Error&)>;

  ApplyPool(std::uint32_t helpers, const ApplierSettings& settings, const HandlerTable& handlers,
            std::byte* heap_base, BufferSink& sink, OnError on_error);
  ~ApplyPool() override;
  ApplyPool(const ApplyPool&) = delete;
  ApplyPool& operator=(const ApplyPool&) = delete;

  /// Ends the threads. Afterwards nothing is submitted.
  void stop();

  std::uint32_t helpers() const { return static_cast<std::uint32_t>(all_.size()); }
  /// False: a helper's queue is full, and no helper has got the job.
  bool try_submit(ApplyJob& job) override;
  /// While set, helpers close their outboxes after every job.
  void set_flushing(bool flushing);
  /// Helpers close, once, what their outboxes hold now.
  void flush_once();
  /// What the helper's handlers sent before it was empty has been submitted.
  bool outbox_empty(std::uint32_t helper) const { return all_[helper]->worker.outbox_empty(); }
  bool outboxes_empty() const;
  std::uint64_t applied() const;
  std::uint64_t sent_by_handlers() const;
  std::uint64_t asked() const;
  std::uint64_t answered() const;
  std::string was_in_handler() const;

 private:
  struct Helper {
    Helper(const ApplierSettings& settings, const HandlerTable& handlers, std::uint32_t slice,
           std::uint32_t n, BufferSink& sink)
        : worker{settings, handlers, slice, n, sink} {}
    ApplyWorker worker;
    SpscQueue<ApplyJob*> jobs{kQueuedJobs};
    std::atomic<std::uint32_t> queued{0};
    std::uint64_t flushed = 0;  // the helper's: of ApplyPool::flushes_
    Doorbell bell;
  };
  static constexpr std::uint32_t kQueuedJobs = 64;

  void run(Helper& helper, std::uint32_t index);

  std::byte* const heap_base_;
  const OnError on_error_;
  Tracer* const tracer_;
  std::vector<std::unique_ptr<Helper>> all_;
  std::atomic<bool> flushing_{false};
  std::atomic<std::uint64_t> flushes_{0};  // asked for by flush_once()
  std::atomic<bool> failed_{false};
  std::atomic<bool> stopping_{false};
  std::vector<std::jthread> threads_;
};

}  // namespace esker
