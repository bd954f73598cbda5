// The network engine: buffers out, frames in.
#include <esker/net/network.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace esker {
namespace {

constexpr std::uint32_t kFramesAStep = 4;  // applied between two looks at the network
constexpr std::uint32_t kPackagesAStep = 64;
constexpr std::uint32_t kEveryPackage = ~0u;
constexpr std::uint32_t kWakeAfter = 8;      // buffers submitted or recycled: one thread switch for many
constexpr std::uint32_t kOutboxBuffers = 2;  // a destination
constexpr std::chrono::microseconds kBetweenEarlyProgress{50};
constexpr const char* kForKernels = "kernels on the GPU";
constexpr std::int64_t kStarvedLatelyNs = 1'000'000'000;

ApplierSettings applier_settings(const NetworkSettings& s, const Transport& transport) {
  return {transport.pe(),        s.destinations, s.buffer_bytes, kOutboxBuffers * transport.n_pes(),
          s.aggregation_timeout, s.tracer};
}

}  // namespace

void Network::Sequence::add(std::uint64_t n) {
  if (n == prefix + 1) {
    ++prefix;
    while (!beyond.empty() && *beyond.begin() == prefix + 1) {
      beyond.erase(beyond.begin());
      ++prefix;
    }
  } else {
    beyond.insert(n);
  }
}

Network::Network(const NetworkSettings& settings, Transport& transport, const HandlerTable& handlers,
                 std::byte* heap_base, const std::atomic<std::uint64_t>& heap_bytes, Failure& failure,
                 Doorbell& user_bell)
    : settings_{settings},
      transport_{transport},
      handlers_{handlers},
      heap_base_{heap_base},
      heap_bytes_{heap_bytes},
      failure_{failure},
      user_bell_{user_bell},
      projecting_{settings.destinations != transport.n_pes()},
      submitted_{settings.submit_capacity},
      to_ship_(transport.n_pes()),
      last_sequence_(transport.n_pes()),
      applied_from_(transport.n_pes()),
      quiet_wanted_(transport.n_pes()),
      quiet_known_(transport.n_pes()),
      direct_wanted_(transport.n_pes()),
      direct_known_(transport.n_pes()),
      inline_worker_{applier_settings(settings, transport), handlers, 0, 1, *this},
      helpers_{settings.apply_helpers,
               applier_settings(settings, transport),
               handlers,
               heap_base,
               *this,
               [this](const Error& error) { fail(error); }},
      blocks_(transport.n_pes()),
      peers_(transport.n_pes()) {}

Network::~Network() {
  // What is still here has missed its end: pools own their buffers, the rest is freed.
  const auto drop = [](Buffer* buffer) {
    if (buffer != nullptr && buffer->home == nullptr) delete buffer;
  };
  for (auto& queue : to_ship_) std::for_each(queue.begin(), queue.end(), drop);
  std::for_each(to_apply_.begin(), to_apply_.end(), drop);
  std::for_each(overflow_.begin(), overflow_.end(), drop);
  Buffer* buffer = nullptr;
  while (submitted_.try_pop(buffer)) drop(buffer);
}

// --- Any thread.

void Network::submit(Buffer* buffer) {
  if (buffer->home == nullptr) {
    const std::uint64_t live =
        grown_live_.fetch_add(buffer->capacity, std::memory_order_relaxed) + buffer->capacity;
    std::uint64_t peak = grown_peak_.load(std::memory_order_relaxed);
    while (live > peak && !grown_peak_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
    }
    if (live > settings_.grown_limit_bytes) {
      fail(Error(
          Error::Kind::kOutOfMemory,
          fmt::format("handlers have sent {} bytes that the network has not yet taken, more than the limit "
                      "of {}: each message makes more than one new one, faster than they are applied",
                      live, settings_.grown_limit_bytes)));
    }
  }
  if (!submitted_.try_push(buffer)) {
    const std::lock_guard lock(overflow_mutex_);
    overflow_.push_back(buffer);
    overflowed_.fetch_add(1, std::memory_order_release);
  }
  // Not for each: the owner may share this thread's core, and a switch costs as much as a buffer.
  if (unseen_.fetch_add(1, std::memory_order_relaxed) + 1 == kWakeAfter) bell_.ring();
}

void Network::post(NetworkRequest* request) {
  posted_.store(request, std::memory_order_release);  // [request]
  bell_.ring();
}

void Network::flush_handlers() {
  if (inline_worker_.outbox_empty() && helpers_.outboxes_empty()) return;
  flush_wanted_.store(true, std::memory_order_release);
  bell_.ring();
}

bool Network::has_news() const {
  return flush_wanted_.load(std::memory_order_relaxed) || !submitted_.was_empty() ||
         overflowed_.load(std::memory_order_acquire) > 0 ||
         posted_.load(std::memory_order_acquire) != nullptr || (failure_.is_set() && !told_failure_);
}

void Network::fail(const Error& error) {
  failure_.set(error.kind(), fmt::format("PE {}: {}", transport_.pe(), error.what()));
  user_bell_.ring();
  bell_.ring();
}

std::uint64_t Network::applied() const {
  if (device_applies_) return device_->traffic().applied;
  return inline_worker_.applier().applied() + helpers_.applied();
}
std::uint64_t Network::sent_by_handlers() const {
  return inline_worker_.applier().sent_by_handlers() + helpers_.sent_by_handlers();
}
std::string Network::was_waiting_for() const { return doing_.load(std::memory_order_relaxed); }
bool Network::was_waiting_for_kernels() const {
  return doing_.load(std::memory_order_relaxed) == kForKernels &&
         steady_ns() - starved_ns_.load(std::memory_order_relaxed) > kStarvedLatelyNs;
}
std::string Network::was_in_handler() const {
  const HandlerTable::Entry* entry = inline_worker_.applier().was_running();
  return entry != nullptr ? entry->name : helpers_.was_in_handler();
}

// --- Owner.

bool Network::progress() {
  bool moved = false;
  try {
    moved |= take_submitted();
    moved |= ship_queued();
    moved |= collect_sent();
    moved |= receive();
    moved |= apply_some();
    if (device_ != nullptr && !failure_.is_set()) moved |= step_device();
    moved |= answer_quiet();
    const bool flushing = active_ != nullptr && active_->kind != NetworkRequest::Kind::kGather;
    if (!moved) {
      const bool for_lanes = flush_wanted_.exchange(false, std::memory_order_acquire);
      if (for_lanes) helpers_.flush_once();
      moved |= close_outbox(flushing || for_lanes);
    }
    moved |= serve();
  } catch (...) {
    fail(current_error("network thread"));
    moved = true;
  }
  if (failure_.is_set() && !told_failure_) tell_failure();
  if (given_back_ >= kWakeAfter || (given_back_ > 0 && !moved)) {
    given_back_ = 0;
    if (aggregators_ != nullptr) aggregators_->ring();
    user_bell_.ring();
  }
  return moved;
}

bool Network::close_outbox(bool flushing) {
  if (!flushing) return inline_worker_.close_stale();
  // Behind others a buffer would wait, and take as much memory as a full one.
  return inline_worker_.close_outbox(
      [this](std::uint32_t pe) { return projecting_ || to_ship_[pe].empty(); });
}

bool Network::take_submitted() {
  bool moved = false;
  unseen_.store(0, std::memory_order_relaxed);
  Buffer* buffer = nullptr;
  while (submitted_.try_pop(buffer)) {
    route(buffer);
    moved = true;
  }
  if (overflowed_.load(std::memory_order_acquire) > 0) {
    const std::lock_guard lock(overflow_mutex_);
    for (Buffer* late : overflow_) route(late);
    overflowed_.fetch_sub(static_cast<std::uint32_t>(overflow_.size()), std::memory_order_relaxed);
    overflow_.clear();
    moved = true;
  }
  return moved;
}

void Network::route(Buffer* buffer) {
  const std::uint32_t me = transport_.pe();
  const bool local = buffer->destination == me;
  const std::uint32_t pe = projecting_ ? me : buffer->destination;
  wire::FrameHeader header;
  std::memcpy(&header, buffer->bytes.get(), sizeof header);
  header.destination = pe;
  header.sequence = ++last_sequence_[pe];
  std::memcpy(buffer->bytes.get(), &header, sizeof header);
  trace_routed(*buffer, header, local);
  peers_[pe].messages_sent.fetch_add(buffer->messages, std::memory_order_relaxed);
  peers_[pe].buffers_sent.fetch_add(1, std::memory_order_relaxed);
  (local ? messages_local_ : messages_remote_).fetch_add(buffer->messages, std::memory_order_relaxed);
  if (local) {
    peers_[pe].messages_received.fetch_add(buffer->messages, std::memory_order_relaxed);
    peers_[pe].buffers_received.fetch_add(1, std::memory_order_relaxed);
    to_apply_.push_back(buffer);
  } else {
    buffers_shipped_.fetch_add(1, std::memory_order_relaxed);
    bytes_shipped_.fetch_add(buffer->used, std::memory_order_relaxed);
    to_ship_[pe].push_back(buffer);
    ++queued_;
  }
}

bool Network::ship_queued() {
  if (queued_ == 0) return false;
  bool moved = false;
  for (std::uint32_t pe = 0; pe < to_ship_.size(); ++pe) {
    auto& queue = to_ship_[pe];
    while (!queue.empty()) {
      Buffer* const buffer = queue.front();
      buffer->journey.taken_ns = steady_ns();
      if (!transport_.try_send(pe, {buffer->bytes.get(), buffer->used}, buffer)) break;
      trace_shipped(*buffer, TracePhase::kAsyncBegin, buffer->journey.taken_ns);
      queue.pop_front();
      --queued_;
      ++in_flight_;
      moved = true;
    }
  }
  return moved;
}

bool Network::collect_sent() {
  if (in_flight_ == 0) return false;
  tokens_.clear();
  transport_.poll_sent(tokens_);
  const std::int64_t now = tokens_.empty() ? 0 : steady_ns();
  for (void* token : tokens_) {
    auto* const buffer = static_cast<Buffer*>(token);
    if (buffer->messages > 0) {
      stages_.send.record(now - buffer->journey.taken_ns);
      trace_shipped(*buffer, TracePhase::kAsyncEnd, now);
      departed_.fetch_add(buffer->messages, std::memory_order_release);
    }
    give_back(buffer);
    --in_flight_;
  }
  return !tokens_.empty();
}

void Network::keep_bytes_of(const std::vector<void*>& tokens) {
  using Bytes = decltype(Buffer::bytes);
  static std::mutex mutex;
  static auto& kept = *new std::vector<Bytes>;  // never freed
  const std::lock_guard lock(mutex);
  for (void* token : tokens) {
    auto* const buffer = static_cast<Buffer*>(token);
    kept.push_back(std::move(buffer->bytes));
    if (buffer->home == nullptr) delete buffer;  // the others are their pools'
  }
}

void Network::give_back(Buffer* buffer) {
  // Control frames have no messages and are not handlers' memory.
  if (buffer->home == nullptr && buffer->messages > 0) {
    grown_live_.fetch_sub(buffer->capacity, std::memory_order_relaxed);
  }
  recycle(buffer);
  ++given_back_;
}

bool Network::receive() {
  bool moved = false;
  for (std::uint32_t i = 0; i < kFramesAStep; ++i) {
    std::optional<Frame> frame = transport_.try_receive();
    if (!frame) break;
    frame->taken_ns = steady_ns();
    moved = true;
    if (failure_.is_set()) {
      transport_.release(*frame);
      continue;
    }
    const std::string defect =
        wire::find_defect(frame->bytes, {transport_.n_pes(), transport_.pe(), &handlers_});
    wire::FrameHeader header{};
    std::memcpy(&header, frame->bytes.data(), std::min(sizeof header, frame->bytes.size()));
    if (!defect.empty()) {
      throw Error(Error::Kind::kNetwork,
                  fmt::format("a frame of {} bytes that says it is from PE {} is damaged: {}",
                              frame->bytes.size(), header.source, defect));
    }
    if (header.kind != wire::Kind::kMessages) {
      control(header, *frame);
      transport_.release(*frame);
      continue;
    }
    peers_[header.source].messages_received.fetch_add(header.messages, std::memory_order_relaxed);
    peers_[header.source].buffers_received.fetch_add(1, std::memory_order_relaxed);
    trace_received(header, frame->taken_ns);
    apply(header, frame->bytes.data(), nullptr, *frame);
  }
  return moved;
}

bool Network::apply_some() {
  bool moved = false;
  for (std::uint32_t i = 0; i < kFramesAStep && !to_apply_.empty() && !failure_.is_set(); ++i) {
    Buffer* const buffer = to_apply_.front();
    to_apply_.pop_front();
    wire::FrameHeader header;
    std::memcpy(&header, buffer->bytes.get(), sizeof header);
    apply(header, buffer->bytes.get(), buffer, {});
    moved = true;
  }
  for (const auto& job : jobs_) {
    if (job->handed_out) continue;
    job->handed_out = device_applies_ ? device_->try_submit(job->job) : helpers_.try_submit(job->job);
    if (!job->handed_out) break;  // in order
    moved = true;
  }
  while (!jobs_.empty() && jobs_.front()->handed_out &&
         jobs_.front()->job.left.load(std::memory_order_acquire) == 0) {  // [job]
    const std::unique_ptr<Job> job = std::move(jobs_.front());
    jobs_.pop_front();
    finish(job->job.header, job->buffer, job->frame);
    moved = true;
  }
  return moved;
}

bool Network::step_device() {
  bool drains = device_->take_drain_request();
  if (drains) starved_ns_.store(steady_ns(), std::memory_order_relaxed);
  if (device_->has_called_handlers() && !handlers_called()) {
    handlers_called_before_ = barriers_ + 1;
    drains = true;
  }
  if (drains) {
    drain_wanted_ = true;
    for (std::uint32_t link = 0; link < device_->links(); ++link) {
      send_control(wire::Kind::kDrainRequest, device_->pe_of_link(link), handlers_called_before_);
    }
  }
  // While kernels run their lanes apply, all but what is for handlers; progress kernels would take their
  // place.
  const bool settles = active_ != nullptr && active_->kind != NetworkRequest::Kind::kGather;
  bool wanted = drain_wanted_ || (settles && ((settling_.ended && !settling_.meets) || handlers_called()));
  if (settles && settling_.meets) {  // others' kernels still send, and nobody here applies
    const auto now = std::chrono::steady_clock::now();
    if (now >= next_early_progress_) {
      next_early_progress_ = now + kBetweenEarlyProgress;
      wanted = true;
    }
  }
  for (const std::uint64_t messages : direct_wanted_) wanted |= messages != 0;
  const std::uint64_t started = device_->progress_started();
  bool moved = device_->step(wanted, handlers_called());
  moved |=
      take_from_progress(kPackagesAStep);  // after the end of a progress kernel, all that it has published
  if (device_->progress_started() != started) drain_wanted_ = false;
  return moved;
}

bool Network::take_from_progress(std::uint32_t most) {
  std::uint64_t ticket = 0;
  bool moved = false;
  for (std::uint32_t i = 0; i < most && device_applies_ && progress_queue_.try_peek(ticket); ++i) {
    const auto& header = progress_queue_.header(ticket);
    inline_worker_.send({header.command, header.words, header.count, progress_queue_.columns(header.words),
                         progress_queue_.row(ticket, header.words, 0)});
    sent_by_progress_.fetch_add(header.count, std::memory_order_relaxed);
    progress_queue_.release(ticket);
    moved = true;
  }
  return moved;
}

bool Network::have_kernels_ended() {
  if (settling_.ended) return true;
  now_waits_for(kForKernels);
  if (device_->was_running()) return false;
  settling_.ended = true;
  settling_.progress = device_->progress_started();
  return true;
}

void Network::settle_again() {
  const bool ended = settling_.ended;  // and no kernel has been started: the user's thread waits here
  settling_ = {};
  if (!ended) return;
  settling_.ended = true;
  settling_.progress = device_->progress_started();
}

bool Network::settle_device(std::uint64_t& flush_epoch) {
  if (device_ == nullptr || settling_.settled) return true;
  if (!have_kernels_ended()) return false;
  now_waits_for("the GPU to apply what has arrived");
  if (!device_->has_completed_since(settling_.progress)) return false;
  settling_.settled = true;
  flush_epoch = aggregators_->request_flush();
  return true;
}

void Network::apply(const wire::FrameHeader& header, const std::byte* bytes, Buffer* buffer,
                    const Frame& frame) {
  const std::uint64_t heap_bytes = heap_bytes_.load(std::memory_order_acquire);
  if (helpers_.helpers() == 0 && !device_applies_) {
    inline_worker_.apply(header, bytes, {heap_base_, heap_bytes});
    finish(header, buffer, frame);
    return;
  }
  jobs_.push_back(std::make_unique<Job>());
  Job& job = *jobs_.back();
  job.job.header = header;
  job.job.frame = bytes;
  job.job.heap_bytes = heap_bytes;
  job.buffer = buffer;
  job.frame = frame;
}

void Network::finish(const wire::FrameHeader& header, Buffer* buffer, const Frame& frame) {
  applied_from_[header.source].add(header.sequence);
  trace_applied(header, buffer != nullptr ? buffer->journey.taken_ns : frame.taken_ns);
  peers_[header.source].buffers_applied.fetch_add(1, std::memory_order_relaxed);
  if (buffer != nullptr) {
    departed_.fetch_add(buffer->messages, std::memory_order_release);
    give_back(buffer);
  } else {
    transport_.release(frame);
  }
}

void Network::send_control(wire::Kind kind, std::uint32_t pe, std::uint64_t value, std::string_view text) {
  const std::size_t room = settings_.buffer_bytes - sizeof(wire::FrameHeader);
  text = text.substr(0, room);
  auto* const buffer =
      new Buffer(static_cast<std::uint32_t>(sizeof(wire::FrameHeader) + text.size()), nullptr);
  wire::FrameHeader header = wire::make_header(kind, transport_.pe(), pe);
  header.value = value;
  header.text_bytes = static_cast<std::uint32_t>(text.size());
  header.bytes += header.text_bytes;
  std::memcpy(buffer->bytes.get(), &header, sizeof header);
  std::copy_n(reinterpret_cast<const std::byte*>(text.data()), text.size(),
              buffer->bytes.get() + sizeof header);
  buffer->used = header.bytes;
  to_ship_[pe].push_front(buffer);  // what it says may be what those before it wait for
  ++queued_;
}

void Network::control(const wire::FrameHeader& header, const Frame& frame) {
  const auto* text = reinterpret_cast<const char*>(frame.bytes.data() + sizeof header);
  switch (header.kind) {
    case wire::Kind::kQuietRequest:
      quiet_wanted_[header.source] = std::max(quiet_wanted_[header.source], header.value);
      return;
    case wire::Kind::kQuietReply:
      quiet_known_[header.source] = std::max(quiet_known_[header.source], header.value);
      return;
    case wire::Kind::kDrainRequest:
      drain_wanted_ = true;
      handlers_called_before_ = std::max(handlers_called_before_, header.value);
      return;
    case wire::Kind::kDirectQuietRequest:
      direct_wanted_[header.source] = std::max(direct_wanted_[header.source], header.value);
      return;
    case wire::Kind::kDirectQuietReply:
      direct_known_[header.source] = std::max(direct_known_[header.source], header.value);
      return;
    case wire::Kind::kHangReport:
      if (supervisor_ != nullptr) supervisor_->heard_hang_report(header.source, header.value);
      return;
    case wire::Kind::kStatusRequest:
      if (supervisor_ != nullptr) supervisor_->heard_question(header.source);
      return;
    case wire::Kind::kStatusReply:
      if (supervisor_ != nullptr)
        supervisor_->heard_answer(header.source, header.value, {text, header.text_bytes});
      return;
    case wire::Kind::kFailure: {
      told_failure_ = true;  // its origin tells everybody
      failure_.set(static_cast<Error::Kind>(header.value), std::string(text, header.text_bytes));
      user_bell_.ring();
      return;
    }
    case wire::Kind::kMessages:
      return;
  }
}

void Network::tell_failure() {
  told_failure_ = true;
  for (auto& queue : to_ship_) {  // what waits would keep the others from hearing of it
    for (Buffer* const buffer : queue) give_back(buffer);
    queue.clear();
  }
  queued_ = 0;
  for (std::uint32_t pe = 0; pe < transport_.n_pes(); ++pe) {
    if (pe == transport_.pe()) continue;
    send_control(wire::Kind::kFailure, pe, static_cast<std::uint64_t>(failure_.kind()), failure_.message());
  }
}

void Network::broadcast_hang_report() {
  for (std::uint32_t pe = 0; pe < transport_.n_pes(); ++pe) {
    if (pe == transport_.pe()) continue;
    send_control(wire::Kind::kHangReport, pe, peers_[pe].messages_sent.load(std::memory_order_relaxed));
  }
}

bool Network::answer_quiet() {
  bool moved = false;
  for (std::uint32_t pe = 0; pe < quiet_wanted_.size(); ++pe) {
    if (quiet_wanted_[pe] == 0 || applied_from_[pe].prefix < quiet_wanted_[pe]) continue;
    send_control(wire::Kind::kQuietReply, pe, applied_from_[pe].prefix);
    quiet_wanted_[pe] = 0;
    moved = true;
  }
  for (std::uint32_t link = 0; device_ != nullptr && link < device_->links(); ++link) {
    std::uint64_t& wanted = direct_wanted_[device_->pe_of_link(link)];
    if (wanted == 0 || device_->applied_from(link) < wanted) continue;
    send_control(wire::Kind::kDirectQuietReply, device_->pe_of_link(link), device_->applied_from(link));
    wanted = 0;
    moved = true;
  }
  return moved;
}

// --- The user's calls.

bool Network::locally_idle() const {
  return queued_ == 0 && in_flight_ == 0 && to_apply_.empty() && jobs_.empty() && submitted_.was_empty() &&
         overflowed_.load(std::memory_order_acquire) == 0 && inline_worker_.outbox_empty() &&
         helpers_.outboxes_empty();
}

bool Network::serve() {
  if (failure_.is_set()) {
    // The user's thread sees the failure and does not come back for the answer.
    active_ = nullptr;
    posted_.store(nullptr, std::memory_order_relaxed);
    return false;
  }
  if (active_ == nullptr) {
    active_ = posted_.exchange(nullptr, std::memory_order_acquire);  // [request]
    if (active_ == nullptr) return false;
    if (active_->kind == NetworkRequest::Kind::kGather) {
      transport_.begin_gather(active_->mine);
      now_waits_for("a gather: some PE has not called it");
    } else {
      helpers_.set_flushing(true);
      if (device_ != nullptr) device_->expect_progress();
      quiet_ = {};
      settling_ = {};
      barrier_step_ = BarrierStep::kSettle;
      barrier_seen_equal_ = false;
      barrier_rounds_ = 0;
      next_round_ = {};
      now_waits_for("the aggregators to close their buffers");
    }
    return true;
  }
  switch (active_->kind) {
    case NetworkRequest::Kind::kGather:
      if (!transport_.test_gather(blocks_)) return false;
      active_->all = blocks_;
      complete();
      return true;
    case NetworkRequest::Kind::kQuiet:
      return serve_quiet();
    case NetworkRequest::Kind::kBarrier:
      return serve_barrier();
  }
  return false;
}

void Network::complete() {
  helpers_.set_flushing(false);
  now_waits_for("");
  std::exchange(active_, nullptr)->done.store(true, std::memory_order_release);  // [done]
  user_bell_.ring();
}

bool Network::serve_quiet() {
  const std::uint32_t me = transport_.pe();
  if (!quiet_.requested) {
    if (!settle_device(active_->flush_epoch)) return false;
    if (!aggregators_->flushed(active_->flush_epoch)) return false;
    take_from_progress(kEveryPackage);
    inline_worker_.close_outbox();
    while (quiet_.emptied < helpers_.helpers() && helpers_.outbox_empty(quiet_.emptied)) ++quiet_.emptied;
    if (quiet_.emptied < helpers_.helpers()) return false;
    take_submitted();  // what was closed for this call has its sequence number now
    now_waits_for("peers to apply this PE's messages");
    quiet_.target = last_sequence_;
    quiet_.requested = true;
    for (std::uint32_t pe = 0; pe < quiet_.target.size(); ++pe) {
      if (pe != me && quiet_known_[pe] < quiet_.target[pe]) {
        send_control(wire::Kind::kQuietRequest, pe, quiet_.target[pe]);
      }
    }
    for (std::uint32_t link = 0; device_ != nullptr && link < device_->links(); ++link) {
      quiet_.direct_target.push_back(device_->sent_to(link));
      const std::uint32_t pe = device_->pe_of_link(link);
      if (direct_known_[pe] < quiet_.direct_target[link]) {
        send_control(wire::Kind::kDirectQuietRequest, pe, quiet_.direct_target[link]);
      }
    }
    return true;
  }
  for (std::uint32_t pe = 0; pe < quiet_.target.size(); ++pe) {
    if ((pe == me ? applied_from_[pe].prefix : quiet_known_[pe]) < quiet_.target[pe]) return false;
  }
  for (std::uint32_t link = 0; link < quiet_.direct_target.size(); ++link) {
    if (direct_known_[device_->pe_of_link(link)] < quiet_.direct_target[link]) return false;
  }
  complete();
  return true;
}

bool Network::serve_barrier() {
  switch (barrier_step_) {
    case BarrierStep::kSettle:
      if (device_ != nullptr && barrier_rounds_ == 0) {
        // A progress kernel that begins when all PEs' kernels have ended finds all that they have sent.
        if (!have_kernels_ended()) return false;
        settling_.meets = true;
        device_->expect_progress();
        next_early_progress_ = std::chrono::steady_clock::now() + kBetweenEarlyProgress;
        active_->flush_epoch = aggregators_->request_flush();
      } else if (!settle_device(active_->flush_epoch)) {
        return false;
      }
      barrier_step_ = BarrierStep::kFlush;
      return true;
    case BarrierStep::kFlush:
      if (!aggregators_->flushed(active_->flush_epoch)) return false;
      barrier_step_ = BarrierStep::kDrain;
      now_waits_for("this PE's messages to leave and to be applied");
      return true;
    case BarrierStep::kDrain: {
      if (!locally_idle() || std::chrono::steady_clock::now() < next_round_) return false;
      if (device_ != nullptr && !settling_.meets &&
          !device_->has_completed_since(settling_.progress)) {  // local frames have arrived there since
        settle_again();
        barrier_step_ = BarrierStep::kSettle;
        return true;
      }
      if (take_from_progress(kEveryPackage)) return true;
      // Applied is read before sent: a handler's sends are counted before its own message is.
      active_->mine.values[0] = applied();
      active_->mine.values[1] =
          published_->load(std::memory_order_acquire) + sent_by_handlers() + sent_by_progress();
      if (device_ != nullptr) {
        active_->mine.values[1] += device_->traffic().sent;
        active_->mine.values[2] = device_->has_called_handlers() ? 1 : 0;
        active_->mine.values[3] = settling_.meets ? 1 : 0;
      }
      transport_.begin_gather(active_->mine);
      barrier_step_ = BarrierStep::kGather;
      now_waits_for("termination detection: some PE is not idle or has not called it");
      return true;
    }
    case BarrierStep::kGather: {
      if (!transport_.test_gather(blocks_)) return false;
      ++barrier_rounds_;
      for (const GatherBlock& block : blocks_) {
        if (block.collective == active_->mine.collective && block.sequence == active_->mine.sequence)
          continue;
        active_->all = blocks_;  // the user's thread says which calls met
        complete();
        return true;
      }
      std::uint64_t applied_sum = 0;
      std::uint64_t sent_sum = 0;
      bool may_send = false;
      bool meets = false;  // some PE's counts are not those of its kernels' end
      for (const GatherBlock& block : blocks_) {
        applied_sum += block.values[0];
        sent_sum += block.values[1];
        may_send |= block.values[2] != 0;
        meets |= block.values[3] != 0;
      }
      if (may_send) handlers_called_before_ = std::max(handlers_called_before_, barriers_ + 1);
      const bool equal = !meets && applied_sum == sent_sum;
      const bool unchanged =
          barrier_seen_equal_ && applied_sum == barrier_sums_[0] && sent_sum == barrier_sums_[1];
      // Sums of different moments prove nothing until they have been seen twice, but where what has been sent
      // is final: then no more than that is ever applied.
      if (equal && (unchanged || !may_send)) {
        ++barriers_;
        if (device_ != nullptr) device_->complete_round();
        active_->all = blocks_;
        complete();
        return true;
      }
      barrier_seen_equal_ = equal;
      barrier_sums_[0] = applied_sum;
      barrier_sums_[1] = sent_sum;
      settle_again();
      barrier_step_ = device_ != nullptr ? BarrierStep::kSettle : BarrierStep::kDrain;
      // Two or three rounds are the rule, after the meeting. More mean that handlers go on sending, or that
      // something is lost.
      next_round_ = std::chrono::steady_clock::now() +
                    (barrier_rounds_ < 4 ? std::chrono::microseconds{0} : std::chrono::microseconds{500});
      return true;
    }
  }
  return false;
}

}  // namespace esker
