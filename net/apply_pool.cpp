// The helpers' loop.
#include <esker/net/apply_pool.hpp>

#include <string>

namespace esker {
namespace {
constexpr std::chrono::microseconds kLongestNap{1000};
}

ApplyWorker::ApplyWorker(const ApplierSettings& settings, const HandlerTable& handlers, std::uint32_t slice,
                         std::uint32_t slices, BufferSink& sink)
    : settings_{settings},
      is_first_slice_{slice == 0},
      pool_{settings.buffer_bytes, settings.buffers},
      outbox_{settings.pe, settings.n_pes, pool_, OnExhausted::kGrow, sink, settings.tracer},
      applier_{handlers, slice, slices} {}

void ApplyWorker::apply(const wire::FrameHeader& header, const std::byte* frame, HeapView heap) {
  TraceSpan span(settings_.tracer, TraceWhat::kApply);
  if (span.is_on()) {
    const BufferId id{header.source, header.destination, header.sequence};
    span.set_values({header.messages, header.bytes, 0, 0});
    span.set_buffer(id);
    // Each helper goes through the whole frame; a flow has one end.
    if (is_first_slice_) {
      settings_.tracer->add_flow(TracePhase::kFlowEnd, id, span.begin_ns(), settings_.tracer->track());
    }
  }
  // Beforehand: what a handler has sent counts as open from the moment that its effects can be seen.
  was_open_.store(1, std::memory_order_seq_cst);
  HostCall call{heap, settings_.pe, settings_.n_pes, &outbox_};
  applier_.apply(header, frame, call);
  was_open_.store(outbox_.open_buffers(), std::memory_order_release);
}

void ApplyWorker::send(const PackageView& package) {
  (void)outbox_.append(package, 0);  // it grows
  was_open_.store(outbox_.open_buffers(), std::memory_order_release);
}

void ApplyWorker::send_to_one(std::uint32_t pe, const PackageView& package) {
  (void)outbox_.append_to_one(pe, package, 0);
  was_open_.store(outbox_.open_buffers(), std::memory_order_release);
}

bool ApplyWorker::close_stale() {
  if (outbox_.empty()) return false;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const bool closed = outbox_.close_stale({false, now}, settings_.timeout, std::chrono::nanoseconds::max());
  was_open_.store(outbox_.open_buffers(), std::memory_order_release);
  return closed;
}

ApplyPool::ApplyPool(std::uint32_t helpers, const ApplierSettings& settings, const HandlerTable& handlers,
                     std::byte* heap_base, BufferSink& sink, OnError on_error)
    : heap_base_{heap_base}, on_error_{std::move(on_error)}, tracer_{settings.tracer} {
  for (std::uint32_t i = 0; i < helpers; ++i) {
    all_.push_back(std::make_unique<Helper>(settings, handlers, i, helpers, sink));
  }
  for (std::uint32_t i = 0; i < helpers; ++i) threads_.emplace_back([this, i] { run(*all_[i], i); });
}

ApplyPool::~ApplyPool() { stop(); }

void ApplyPool::stop() {
  stopping_.store(true, std::memory_order_release);
  for (const auto& helper : all_) helper->bell.ring();
  threads_.clear();  // joins
}

bool ApplyPool::try_submit(ApplyJob& job) {
  for (const auto& helper : all_) {
    if (helper->queued.load(std::memory_order_acquire) == kQueuedJobs) return false;
  }
  job.left.store(helpers(), std::memory_order_relaxed);
  for (const auto& helper : all_) {
    helper->queued.fetch_add(1, std::memory_order_relaxed);
    helper->jobs.try_push(&job);
    helper->bell.ring();
  }
  return true;
}

void ApplyPool::run(Helper& helper, std::uint32_t index) {
  if (tracer_ != nullptr) tracer_->name_thread("apply helper " + std::to_string(index));
  const auto guarded = [&](const auto& step) {
    if (failed_.load(std::memory_order_acquire)) return false;
    try {
      return step();
    } catch (...) {
      failed_.store(true, std::memory_order_release);
      on_error_(current_error("apply helper " + std::to_string(index)));
    }
    return false;
  };
  const auto is_to_flush = [&] {
    return flushing_.load(std::memory_order_acquire) ||
           flushes_.load(std::memory_order_acquire) != helper.flushed;
  };
  const auto flush = [&](Helper& of) {
    of.flushed = flushes_.load(std::memory_order_acquire);
    return of.worker.close_outbox();
  };
  Backoff backoff{kLongestNap};
  while (!stopping_.load(std::memory_order_acquire)) {
    ApplyJob* job = nullptr;
    if (helper.jobs.try_pop(job)) {
      guarded([&] {
        helper.worker.apply(job->header, job->frame, {heap_base_, job->heap_bytes});
        if (is_to_flush()) flush(helper);
        return true;
      });
      job->left.fetch_sub(1, std::memory_order_acq_rel);  // [job]
      helper.queued.fetch_sub(1, std::memory_order_release);
      backoff.reset();
    } else if (guarded([&] {
                 if (!is_to_flush()) return helper.worker.close_stale();
                 return flush(helper);
               })) {
      backoff.reset();
    } else {
      backoff.wait(helper.bell, [&] {
        return stopping_.load(std::memory_order_acquire) || !helper.jobs.was_empty() ||
               (is_to_flush() && !failed_.load(std::memory_order_acquire) && !helper.worker.outbox_empty());
      });
    }
  }
}

void ApplyPool::flush_once() {
  flushes_.fetch_add(1, std::memory_order_release);
  for (const auto& helper : all_) helper->bell.ring();
}

void ApplyPool::set_flushing(bool flushing) {
  flushing_.store(flushing, std::memory_order_release);
  if (flushing) {
    for (const auto& helper : all_) helper->bell.ring();
  }
}

bool ApplyPool::outboxes_empty() const {
  for (const auto& helper : all_) {
    if (!helper->worker.outbox_empty()) return false;
  }
  return true;
}

std::uint64_t ApplyPool::applied() const {
  std::uint64_t sum = 0;
  for (const auto& helper : all_) sum += helper->worker.applier().applied();
  return sum;
}

std::uint64_t ApplyPool::sent_by_handlers() const {
  std::uint64_t sum = 0;
  for (const auto& helper : all_) sum += helper->worker.applier().sent_by_handlers();
  return sum;
}

std::uint64_t ApplyPool::asked() const {
  std::uint64_t sum = 0;
  for (const auto& helper : all_) sum += helper->worker.applier().asked();
  return sum;
}

std::uint64_t ApplyPool::answered() const {
  std::uint64_t sum = 0;
  for (const auto& helper : all_) sum += helper->worker.applier().answered();
  return sum;
}

std::string ApplyPool::was_in_handler() const {
  for (const auto& helper : all_) {
    if (const auto* entry = helper->worker.applier().was_running(); entry != nullptr) return entry->name;
  }
  return {};
}

}  // namespace esker
