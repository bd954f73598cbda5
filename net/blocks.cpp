// Blocks out in frames, requests and replies in.
#include <esker/net/blocks.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <esker/device/error.hpp>

namespace esker {
namespace {

constexpr std::uint32_t kBlockFramesAStep = 2;       // messages are looked at in between
constexpr std::uint64_t kPiecesAStep = 64;           // to and from heaps that this PE reaches
constexpr std::uint64_t kPartBesideMessages = 2048;  // copied in about the time that a message takes

[[noreturn]] void refuse_block(const wire::FrameHeader& header, const std::string& what) {
  throw Error(Error::Kind::kNetwork, fmt::format("a block's frame from PE {}: {}", header.source, what));
}

}  // namespace

/// One frame of a transfer.
class Blocks::Writer final : public FrameWriter {
 public:
  Writer(Blocks& blocks, const BlockTransfer& transfer, std::uint64_t bytes, std::uint64_t sequence)
      : blocks_{blocks}, transfer_{transfer}, bytes_{bytes}, sequence_{sequence} {}

  std::size_t frame_bytes() const { return wire::kBlockBytesAt + bytes_; }
  void write(std::byte* frame) override {
    using Kind = BlockTransfer::Kind;
    const BlockTransfer& t = transfer_;
    const auto kind = t.kind == Kind::kPut   ? wire::Kind::kBlock
                      : t.kind == Kind::kGet ? wire::Kind::kBlockRequest
                                             : wire::Kind::kBlockReply;
    wire::FrameHeader header = wire::make_header(kind, blocks_.transport_.pe(), t.pe);
    header.sequence = sequence_;
    header.bytes = static_cast<std::uint32_t>(frame_bytes());
    header.messages = 1;
    wire::BlockHeader block{};
    block.offset = t.far;
    block.piece_bytes = t.far_layout.piece_bytes;
    block.stride = t.far_layout.stride;
    block.first = t.sent;
    block.bytes = t.bytes;
    block.number = t.number;
    std::memcpy(frame, &header, sizeof header);
    std::memcpy(frame + sizeof header, &block, sizeof block);
    std::byte* const to = frame + wire::kBlockBytesAt;
    t.near_layout.for_each_stretch(t.sent, bytes_, [&](auto offset, auto at, auto length) {
      blocks_.copy(to + at, t.near + offset, length);
    });
    blocks_.wait_for_copies();
  }

 private:
  Blocks& blocks_;
  const BlockTransfer& transfer_;
  const std::uint64_t bytes_;
  const std::uint64_t sequence_;
};

Blocks::Blocks(Shipping& shipping, Transport& transport, std::uint32_t frame_bytes, std::byte* heap_base,
               const std::atomic<std::uint64_t>& heap_bytes)
    : shipping_{shipping},
      transport_{transport},
      most_{(frame_bytes - wire::kBlockBytesAt) / kLineBytes * kLineBytes},
      heap_base_{heap_base},
      heap_bytes_{heap_bytes} {
  for (std::uint32_t pe = 0; pe < transport.n_pes(); ++pe)
    peers_.push_back(
        std::make_unique<Peer>(static_cast<std::uint32_t>(sizeof(wire::FrameHeader)), frame_bytes));
}

bool Blocks::start(const BlockTransfer& transfer) {
  const bool travels = memory_ == nullptr || memory_->reached_heap(transfer.pe) == nullptr;
  if (travels) {
    const bool asks = transfer.kind == BlockTransfer::Kind::kGet;
    if (asks) {
      asks_.store(true, std::memory_order_relaxed);
      asked_.fetch_add(1, std::memory_order_release);
    }
    sent_.fetch_add(1, std::memory_order_release);
  }
  const std::lock_guard lock(posted_mutex_);
  posted_.push_back(transfer);
  return posted_count_.fetch_add(1, std::memory_order_release) == 0;  // [block]
}

void Blocks::drop() {
  const std::lock_guard lock(mutex_);
  is_dropped_ = true;
  for (const auto& peer : peers_) {
    peer->own.clear();
    peer->replies.clear();
  }
  gets_.clear();
  own_.store(0, std::memory_order_relaxed);
  replies_.store(0, std::memory_order_relaxed);
  const std::lock_guard posted_lock(posted_mutex_);
  posted_.clear();
  posted_count_.store(0, std::memory_order_relaxed);
}

void Blocks::take_posted() {
  if (!was_started()) return;  // [block]
  const std::lock_guard lock(posted_mutex_);
  for (const BlockTransfer& transfer : posted_) {
    peers_[transfer.pe]->own.push_back(transfer);
    own_.fetch_add(1, std::memory_order_relaxed);
  }
  posted_.clear();
  posted_count_.store(0, std::memory_order_relaxed);
}

std::uint64_t Blocks::part_of(std::uint64_t left) const {
  const std::uint64_t most = is_beside_messages() ? std::min(most_, kPartBesideMessages) : most_;
  if (left <= most) return left;
  return left < 2 * most ? (left / 2 + kLineBytes - 1) / kLineBytes * kLineBytes : most;
}

bool Blocks::ship(bool beside_messages) {
  if (beside_messages) {
    steps_without_ = 0;
  } else if (is_beside_messages()) {
    ++steps_without_;
  }
  if (is_idle()) return false;
  const std::lock_guard lock(mutex_);
  if (is_dropped_) return false;
  take_posted();
  const auto n_pes = static_cast<std::uint32_t>(peers_.size());
  std::uint32_t shipped = 0;
  for (std::uint32_t i = 0; i < n_pes && shipped < kBlockFramesAStep; ++i) {
    next_ = next_ + 1 < n_pes ? next_ + 1 : 0;
    if (ship_to(next_)) ++shipped;
  }
  return shipped > 0;
}

bool Blocks::ship_to(std::uint32_t pe) {
  Peer& peer = *peers_[pe];
  if (peer.own.empty() && peer.replies.empty()) return false;
  peer.reply_next = !peer.reply_next;
  auto& first = peer.reply_next ? peer.replies : peer.own;
  auto& second = peer.reply_next ? peer.own : peer.replies;
  return ship_front(pe, first) || ship_front(pe, second);
}

bool Blocks::ship_front(std::uint32_t pe, std::deque<BlockTransfer>& queue) {
  if (queue.empty()) return false;
  BlockTransfer& transfer = queue.front();
  Peer& peer = *peers_[pe];
  const bool is_reply = transfer.kind == BlockTransfer::Kind::kReply;
  if (!is_reply && memory_ != nullptr) {
    if (std::byte* const heap = memory_->reached_heap(pe); heap != nullptr) return copy_front(queue, heap);
  }
  if (!shipping_.nothing_to_ship(pe)) return false;
  const bool asks = transfer.kind == BlockTransfer::Kind::kGet;
  if (asks && peer.gets == kGets) return false;
  const std::uint64_t bytes = asks ? 0 : part_of(transfer.bytes - transfer.sent);
  if (asks && transfer.number == 0) begin_get(transfer);
  if (!try_ship(pe, transfer, bytes)) return false;
  transfer.sent += bytes;
  if (asks) ++peer.gets;
  if (!asks && transfer.sent < transfer.bytes) {
    sent_.fetch_add(1, std::memory_order_release);  // the frame that follows; start() has counted the first
  } else {
    queue.pop_front();
    (is_reply ? replies_ : own_).fetch_sub(1, std::memory_order_relaxed);
  }
  return true;
}

bool Blocks::try_ship(std::uint32_t pe, const BlockTransfer& transfer, std::uint64_t bytes) {
  const bool in_place = transport_.writes_in_place(pe);
  Peer& peer = *peers_[pe];
  Buffer* const buffer = (in_place ? peer.heads : peer.frames).try_acquire();
  if (buffer == nullptr) return false;
  Writer writer(*this, transfer, bytes, shipping_.last_sequence_to(pe) + 1);
  buffer->used = static_cast<std::uint32_t>(writer.frame_bytes());
  buffer->messages = 0;  // not of those that are gathered in buffers
  buffer->destination = pe;
  if (in_place) {
    if (shipping_.try_write_block(pe, writer.frame_bytes(), writer, buffer)) return true;
    recycle(buffer);
    return false;
  }
  writer.write(buffer->bytes.get());
  shipping_.queue_block(pe, buffer);
  return true;
}

bool Blocks::copy_front(std::deque<BlockTransfer>& queue, std::byte* heap) {
  BlockTransfer& t = queue.front();
  const std::uint64_t pieces = kPiecesAStep * std::min(t.near_layout.piece_bytes, t.far_layout.piece_bytes);
  const std::uint64_t bytes = std::min({memory_->bytes_a_step(steps_without_), pieces, t.bytes - t.sent});
  if (bytes == 0) return false;
  const bool is_put = t.kind == BlockTransfer::Kind::kPut;
  t.near_layout.for_each_stretch(t.sent, bytes, [&](auto offset, auto at, auto length) {
    std::byte* const near = t.near + offset;
    t.far_layout.for_each_stretch(t.sent + at, length, [&](auto far_offset, auto part, auto part_length) {
      std::byte* const far = heap + t.far + far_offset;
      memory_->copy(is_put ? far : near + part, is_put ? near + part : far, part_length);
    });
  });
  memory_->wait_for_copies();
  copies_.fetch_add(1, std::memory_order_relaxed);
  t.sent += bytes;
  if (t.sent == t.bytes) {
    queue.pop_front();
    own_.fetch_sub(1, std::memory_order_relaxed);
  }
  return true;
}

void Blocks::begin_get(BlockTransfer& transfer) {
  transfer.number = ++last_get_;
  gets_[transfer.number] = {transfer.pe, transfer.near, transfer.near_layout, transfer.bytes, transfer.bytes};
}

void Blocks::take_request(const Arrival& arrival) {
  const wire::BlockHeader block = wire::block_header(arrival.bytes);
  const BlockLayout layout{block.piece_bytes, block.stride};
  require_inside(arrival.header, block, heap_bytes_.load(std::memory_order_acquire));
  // The reply counts as sent before the request counts as applied.
  sent_.fetch_add(1, std::memory_order_release);
  {
    const std::lock_guard lock(mutex_);
    peers_[arrival.header.source]->replies.push_back({BlockTransfer::Kind::kReply,
                                                      arrival.header.source,
                                                      heap_base_ + block.offset,
                                                      layout,
                                                      0,
                                                      {block.bytes, block.bytes},
                                                      block.bytes,
                                                      block.number});
    replies_.fetch_add(1, std::memory_order_relaxed);
  }
  applied_.fetch_add(1, std::memory_order_release);
}

void Blocks::take_reply(const Arrival& arrival) {
  const wire::BlockHeader block = wire::block_header(arrival.bytes);
  const std::uint64_t bytes = arrival.header.bytes - wire::kBlockBytesAt;
  const std::lock_guard lock(mutex_);
  if (is_dropped_) return;
  const auto found = gets_.find(block.number);
  if (found == gets_.end() || found->second.pe != arrival.header.source ||
      found->second.bytes != block.bytes || found->second.left < bytes)
    refuse_block(arrival.header,
                 fmt::format("{} bytes for request {}, which there is not", bytes, block.number));
  Get& get = found->second;
  const std::byte* const from = arrival.bytes + wire::kBlockBytesAt;
  get.layout.for_each_stretch(block.first, bytes, [&](auto offset, auto at, auto length) {
    copy(get.result + offset, from + at, length);
  });
  wait_for_copies();
  get.left -= bytes;
  if (get.left == 0) {
    gets_.erase(found);
    --peers_[arrival.header.source]->gets;
    answered_.fetch_add(1, std::memory_order_release);
  }
  applied_.fetch_add(1, std::memory_order_release);
}

void Blocks::copy(void* to, const void* from, std::uint64_t bytes) {
  if (memory_ != nullptr) return memory_->copy(to, from, bytes);
  std::memcpy(to, from, bytes);
}

}  // namespace esker
