// The owner's step.
#include <esker/net/network.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <esker/net/device_stage.hpp>

namespace esker {
namespace {

constexpr std::uint32_t kFramesAStep = 4;    // applied between two polls of the network
constexpr std::uint32_t kWakeAfter = 8;      // buffers given back: one thread switch for many
constexpr std::uint32_t kOutboxBuffers = 2;  // a destination

ApplierSettings applier_settings(const NetworkSettings& s, const Transport& transport) {
  return {transport.pe(),        s.destinations, s.buffer_bytes, kOutboxBuffers * transport.n_pes(),
          s.aggregation_timeout, s.tracer};
}

}  // namespace

Network::Network(const NetworkSettings& settings, Transport& transport, const HandlerTable& handlers,
                 std::byte* heap_base, const std::atomic<std::uint64_t>& heap_bytes, Failure& failure,
                 Doorbell& user_bell)
    : failure_{failure},
      user_bell_{user_bell},
      tracer_{settings.tracer},
      name_{name_of(transport, transport.pe())},
      bell_{transport.bell() != nullptr ? *transport.bell() : own_bell_, {}},
      shipping_{
          {settings.destinations, settings.submit_capacity, settings.grown_limit_bytes, settings.tracer},
          transport,
          handlers},
      control_{shipping_, transport.pe(), transport.n_pes(), settings.buffer_bytes},
      mail_{control_, bell_, user_bell},
      handlers_{settings.apply_helpers,
                applier_settings(settings, transport),
                handlers,
                heap_base,
                *this,
                [this](const Error& error) { fail(error); }},
      dispatch_{handlers_.applier(), heap_bytes},
      blocks_{shipping_, transport, settings.buffer_bytes, heap_base, heap_bytes},
      transport_stage_{shipping_, dispatch_, handlers_, control_},
      stages_{&handlers_, &blocks_, &transport_stage_},
      completion_{transport, failure, user_bell, settings.tracer},
      trace_{shipping_.trace()} {
  failure_.set_before_raise([this] { blocks_.drop(); });
  control_.on(wire::Kind::kFailure, [this](const Control::Message& message) {
    told_failure_ = true;  // its origin tells all PEs
    failure_.set(static_cast<Error::Kind>(message.value), std::string(message.text));
    user_bell_.ring();
  });
}

Network::~Network() {
  failure_.set_before_raise({});
  handlers_.stop();
  shipping_.drop_all();
}

void Network::add_first(CompletionStage& stage) {
  stages_.insert(stages_.begin(), &stage);
  completion_.set_stages(stages_);
}

void Network::add_lanes(Aggregators& aggregators, const std::atomic<std::uint64_t>& published,
                        std::atomic<bool>& call_handlers, std::atomic<std::uint32_t>& waiting) {
  add_first(lanes_.emplace(aggregators, published, call_handlers, waiting));
}

void Network::add_device(DeviceEngine& engine, bool applies) {
  auto stage = std::make_unique<DeviceStage>(engine, applies, handlers_, control_);
  if (applies) {
    dispatch_.set_applier(*stage);
    blocks_.set_memory(engine);
    shipping_.receive_for(engine);
    trace_.set_applied_elsewhere();
  }
  device_stage_ = std::move(stage);
  add_first(*device_stage_);
  naps_are_short_ = true;
  yields_ = Backoff::kYieldsBesideADevice;
}

void Network::set_supervisor(Supervisor& supervisor) {
  control_.on(wire::Kind::kHangReport, [&supervisor](const Control::Message& message) {
    supervisor.heard_hang_report(message.source, message.value);
  });
  control_.on(wire::Kind::kStatusRequest,
              [&supervisor](const Control::Message& message) { supervisor.heard_question(message.source); });
  control_.on(wire::Kind::kStatusReply, [&supervisor](const Control::Message& message) {
    supervisor.heard_answer(message.source, message.value, message.text);
  });
}

// --- Any thread.

void Network::submit(Buffer* buffer) {
  if (buffer->home == nullptr) {
    const std::uint64_t live = shipping_.grown().add(buffer->capacity);
    if (live > shipping_.grown().limit_bytes()) {
      fail(Error(
          Error::Kind::kOutOfMemory,
          fmt::format(
              "handlers, and replies to requests, have sent {} bytes that the network has not yet taken, "
              "more "
              "than the limit of {}: each message makes more than one new one, faster than they are applied",
              live, shipping_.grown().limit_bytes())));
    }
  }
  if (shipping_.submit(buffer)) wake_owner();
}

void Network::post(NetworkRequest* request) {
  completion_.post(request);
  wake_owner();
}

void Network::flush_handlers() {
  if (handlers_.request_flush()) wake_owner();
}

bool Network::has_news() const {
  return handlers_.was_flush_requested() || shipping_.was_submitted() || completion_.was_posted() ||
         mail_.was_posted() || blocks_.was_started() || (failure_.is_set() && !told_failure_);
}

void Network::fail(const Error& error) {
  failure_.set(error.kind(), fmt::format("{}: {}", name_, error.what()));
  user_bell_.ring();
  bell_.ring();
}

std::uint64_t Network::applied() const {
  std::uint64_t sum = 0;
  for (const CompletionStage* stage : stages_) sum += stage->applied();
  return sum;
}

bool Network::was_working() const {
  return std::any_of(stages_.begin(), stages_.end(),
                     [](const CompletionStage* stage) { return stage->was_working(); });
}

// --- Owner.

void Network::enter_thread() const {
  if (naps_are_short_) use_fine_timers();
  trace_.name_thread();
}

std::chrono::microseconds Network::longest_nap() const {
  auto nap = std::chrono::microseconds::max();
  for (const CompletionStage* stage : stages_)
    nap = std::min(nap, stage->longest_nap(completion_.is_active()));
  return nap;
}

bool Network::progress() {
  bool moved = false;
  Moved received, collected, shipped;
  try {
    moved |= shipping_.take_submitted();
    if (!failure_.is_set()) moved |= mail_.step();
    shipped = shipping_.ship();
    moved |= shipped.messages;
    collected = shipping_.collect();
    moved |= collected.messages;
    received = receive();
    moved |= received.messages;
    moved |= apply_own();
    moved |= dispatch_.step();
    moved |= finish_applied();
    if (!failure_.is_set()) {
      for (CompletionStage* const stage : stages_) moved |= stage->step();
    }
    if (!moved) {
      // Behind others a buffer would wait, and take as much memory as a full one.
      moved |= handlers_.close_idle(
          [this](std::uint32_t pe) { return shipping_.is_projecting() || shipping_.nothing_to_ship(pe); });
    }
    if (!failure_.is_set()) moved |= blocks_.ship(moved);
    moved |= completion_.step();
  } catch (...) {
    fail(current_error("network thread"));
    moved = true;
  }
  if (failure_.is_set() && !told_failure_) tell_failure();
  moved |= received.others || collected.others || shipped.others;
  wake_fillers(moved);
  return moved;
}

void Network::wake_fillers(bool moved) {
  const std::uint32_t given_back = shipping_.given_back();
  if (given_back < kWakeAfter && (given_back == 0 || moved)) return;
  shipping_.forget_given_back();
  // Who waits for something else would be woken for nothing, at the price of two thread switches.
  if (lanes_->aggregators_wait()) lanes_->ring();
  if (lanes_->lanes_wait()) user_bell_.ring();
}

Moved Network::receive() {
  if (failure_.is_set()) return {shipping_.discard(kFramesAStep), false};
  Moved moved;
  // After a block's frame the rest of the step comes first.
  for (std::uint32_t i = 0; i < kFramesAStep && !moved.others && !failure_.is_set(); ++i) {
    const std::optional<Arrival> arrival = shipping_.try_receive();
    if (!arrival) break;
    moved.others = wire::is_block(arrival->header.kind);
    moved.messages |= !moved.others;
    switch (arrival->header.kind) {
      case wire::Kind::kMessages:
      case wire::Kind::kBlock:
        dispatch_.apply(*arrival);
        finish_applied();
        break;
      case wire::Kind::kBlockRequest:
        blocks_.take_request(*arrival);
        shipping_.finish(*arrival);
        break;
      case wire::Kind::kBlockReply:
        blocks_.take_reply(*arrival);
        shipping_.finish(*arrival);
        break;
      default:
        control_.receive(*arrival);
        shipping_.release(arrival->frame);
    }
  }
  return moved;
}

bool Network::apply_own() {
  bool moved = false;
  for (std::uint32_t i = 0; i < kFramesAStep && !failure_.is_set(); ++i) {
    const std::optional<Arrival> arrival = shipping_.try_take_own();
    if (!arrival) break;
    dispatch_.apply(*arrival);
    finish_applied();
    moved = true;
  }
  return moved;
}

bool Network::finish_applied() {
  bool moved = false;
  while (const std::optional<Arrival> arrival = dispatch_.take_applied()) {
    shipping_.finish(*arrival);
    if (arrival->header.kind == wire::Kind::kBlock) blocks_.has_applied();
    moved = true;
  }
  if (moved && is_watched_.load(std::memory_order_relaxed)) user_bell_.ring();
  return moved;
}

void Network::tell_failure() {
  told_failure_ = true;
  blocks_.drop();
  shipping_.drop_queued();  // what waits would keep the others from hearing of it
  control_.send_to_all(
      wire::Kind::kFailure, [this](std::uint32_t) { return static_cast<std::uint64_t>(failure_.kind()); },
      failure_.message());
}

void Network::broadcast_hang_report() {
  control_.send_to_all(wire::Kind::kHangReport, [this](std::uint32_t pe) {
    return shipping_.peer(pe).messages_sent.load(std::memory_order_relaxed);
  });
}

}  // namespace esker
