// Buffers out, frames in.
#include <esker/net/shipping.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>

#include <esker/device/error.hpp>
#include <esker/net/device_engine.hpp>

namespace esker {

Shipping::Shipping(const ShippingSettings& settings, Transport& transport, const HandlerTable& handlers)
    : transport_{transport},
      handlers_{handlers},
      projecting_{settings.destinations != transport.n_pes()},
      submitted_{settings.submit_capacity},
      grown_{settings.grown_limit_bytes},
      to_ship_(transport.n_pes()),
      last_sequence_(transport.n_pes()),
      applied_from_(transport.n_pes()),
      trace_{settings.tracer},
      peers_(transport.n_pes()) {}

void Shipping::drop_all() {
  const auto drop = [](Buffer* buffer) {
    if (buffer->home == nullptr) delete buffer;  // the others are their pools'
  };
  for (auto& queue : to_ship_) std::for_each(queue.begin(), queue.end(), drop);
  std::for_each(own_.begin(), own_.end(), drop);
  submitted_.take(drop);
}

bool Shipping::take_submitted() {
  return submitted_.take([this](Buffer* buffer) { route(buffer); });
}

void Shipping::route(Buffer* buffer) {
  const std::uint32_t me = transport_.pe();
  const bool stays = buffer->destination == me;
  const std::uint32_t pe = projecting_ ? me : buffer->destination;
  wire::FrameHeader header;
  std::memcpy(&header, buffer->bytes.get(), sizeof header);
  header.destination = pe;
  header.sequence = ++last_sequence_[pe];
  std::memcpy(buffer->bytes.get(), &header, sizeof header);
  trace_.routed(*buffer, header, stays);
  peers_[pe].messages_sent.fetch_add(buffer->messages, std::memory_order_relaxed);
  peers_[pe].buffers_sent.fetch_add(1, std::memory_order_relaxed);
  (stays ? messages_local_ : messages_remote_).fetch_add(buffer->messages, std::memory_order_relaxed);
  if (stays) {
    peers_[pe].messages_received.fetch_add(buffer->messages, std::memory_order_relaxed);
    peers_[pe].buffers_received.fetch_add(1, std::memory_order_relaxed);
    own_.push_back(buffer);
  } else {
    buffers_shipped_.fetch_add(1, std::memory_order_relaxed);
    bytes_shipped_.fetch_add(buffer->used, std::memory_order_relaxed);
    to_ship_[pe].push_back(buffer);
    ++queued_;
  }
}

bool Shipping::try_write_block(std::uint32_t pe, std::size_t bytes, FrameWriter& writer, Buffer* buffer) {
  if (!transport_.try_write(pe, bytes, writer, buffer)) return false;
  ++in_flight_;
  count_block(pe, bytes);
  return true;
}

void Shipping::queue_block(std::uint32_t pe, Buffer* buffer) {
  to_ship_[pe].push_back(buffer);
  ++queued_;
  count_block(pe, buffer->used);
}

void Shipping::count_block(std::uint32_t pe, std::size_t bytes) {
  ++last_sequence_[pe];
  peers_[pe].messages_sent.fetch_add(1, std::memory_order_relaxed);
  peers_[pe].buffers_sent.fetch_add(1, std::memory_order_relaxed);
  buffers_shipped_.fetch_add(1, std::memory_order_relaxed);
  bytes_shipped_.fetch_add(bytes, std::memory_order_relaxed);
}

Moved Shipping::ship() {
  if (queued_ == 0) return {};
  Moved moved;
  for (std::uint32_t pe = 0; pe < to_ship_.size(); ++pe) {
    auto& queue = to_ship_[pe];
    while (!queue.empty()) {
      Buffer* const buffer = queue.front();
      buffer->journey.taken_ns = steady_ns();
      if (!transport_.try_send(pe, {buffer->bytes.get(), buffer->used}, buffer)) break;
      trace_.send_begins(*buffer, queued_ + in_flight_);
      queue.pop_front();
      --queued_;
      ++in_flight_;
      (buffer->messages > 0 ? moved.messages : moved.others) = true;
    }
  }
  return moved;
}

Moved Shipping::collect() {
  if (in_flight_ == 0) return {};
  Moved moved;
  tokens_.clear();
  transport_.poll_sent(tokens_);
  const std::int64_t now = tokens_.empty() ? 0 : steady_ns();
  for (void* token : tokens_) {
    auto* const buffer = static_cast<Buffer*>(token);
    (buffer->messages > 0 ? moved.messages : moved.others) = true;
    if (buffer->messages > 0) {
      trace_.send_ends(*buffer, now, queued_ + in_flight_);
      departed_.fetch_add(buffer->messages, std::memory_order_release);
    }
    give_back(buffer);
    --in_flight_;
  }
  return moved;
}

void Shipping::give_back(Buffer* buffer) {
  // Control frames have no messages and are not handlers' memory.
  if (buffer->home == nullptr && buffer->messages > 0) grown_.remove(buffer->capacity);
  if (buffer->messages > 0) ++given_back_;  // who fills buffers may wait for it
  recycle(buffer);
}

void Shipping::receive_for(DeviceEngine& engine) {
  if (const std::size_t bytes = transport_.receive_bytes(); bytes > 0)
    transport_.receive_into(engine.receive_memory(bytes));
}

std::optional<Arrival> Shipping::try_receive() {
  std::optional<Frame> frame = transport_.try_receive();
  if (!frame) return std::nullopt;
  frame->taken_ns = steady_ns();
  const std::string defect =
      wire::find_defect(frame->bytes, {transport_.n_pes(), transport_.pe(), &handlers_});
  Arrival arrival{{}, frame->bytes.data(), nullptr, *frame};
  std::memcpy(&arrival.header, frame->bytes.data(), std::min(sizeof arrival.header, frame->bytes.size()));
  const wire::FrameHeader& header = arrival.header;
  if (!defect.empty()) {
    throw Error(Error::Kind::kNetwork,
                fmt::format("a frame of {} bytes that says it is from PE {} is damaged: {}",
                            frame->bytes.size(), header.source, defect));
  }
  if (header.kind == wire::Kind::kMessages || wire::is_block(header.kind)) {
    peers_[header.source].messages_received.fetch_add(header.messages, std::memory_order_relaxed);
    peers_[header.source].buffers_received.fetch_add(1, std::memory_order_relaxed);
    trace_.received(header, frame->taken_ns);
  }
  return arrival;
}

std::optional<Arrival> Shipping::try_take_own() {
  if (own_.empty()) return std::nullopt;
  Buffer* const buffer = own_.front();
  own_.pop_front();
  Arrival arrival{{}, buffer->bytes.get(), buffer, {}};
  std::memcpy(&arrival.header, buffer->bytes.get(), sizeof arrival.header);
  return arrival;
}

void Shipping::finish(const Arrival& arrival) {
  const wire::FrameHeader& header = arrival.header;
  applied_from_[header.source].add(header.sequence);
  trace_.applied(header, arrival.taken_ns());
  peers_[header.source].buffers_applied.fetch_add(1, std::memory_order_relaxed);
  if (arrival.buffer != nullptr) {
    departed_.fetch_add(arrival.buffer->messages, std::memory_order_release);
    give_back(arrival.buffer);
  } else {
    transport_.release(arrival.frame);
  }
}

void Shipping::send_first(std::uint32_t pe, Buffer* buffer) {
  to_ship_[pe].push_front(buffer);
  ++queued_;
}

void Shipping::drop_queued() {
  for (auto& queue : to_ship_) {
    for (Buffer* const buffer : queue) give_back(buffer);
    queue.clear();
  }
  queued_ = 0;
}

bool Shipping::discard(std::uint32_t most) {
  bool moved = false;
  for (std::uint32_t i = 0; i < most; ++i) {
    const std::optional<Frame> frame = transport_.try_receive();
    if (!frame) break;
    transport_.release(*frame);
    moved = true;
  }
  return moved;
}

void Shipping::keep_bytes_of(const std::vector<void*>& tokens) {
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

}  // namespace esker
