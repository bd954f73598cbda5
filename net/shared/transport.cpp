// In each PE's memory, a ring of frames for each peer of its host, a place for gathers, and a bell.
#include <esker/net/shared/transport.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include <esker/device/error.hpp>
#include <esker/device/platform.hpp>
#include <esker/net/connecting.hpp>
#include <esker/net/shared/segment.hpp>
#include <esker/queue/doorbell.hpp>

namespace esker::shared {
namespace {

constexpr std::uint32_t kMostSlots = 4;           // of a ring: few stay in a cache
constexpr std::uint32_t kSharedFrame = 1u << 31;  // of Frame::slot: {1, rank: 23 bits, slot: 8 bits}

std::size_t whole_lines(std::size_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes; }

/// A frame on its way. In round r of the slot its state is 3r while it is free, 3r + 1 with a frame, 3r + 2
/// while the receiver holds that, and then free for the next round.
struct alignas(kLineBytes) Slot {
  std::atomic<std::uint64_t> state;
  std::uint64_t bytes;
  std::byte* frame() { return reinterpret_cast<std::byte*>(this + 1); }
};
static_assert(sizeof(Slot) == kLineBytes && std::atomic<std::uint64_t>::is_always_lock_free);

/// What a PE gives to gathers, which alternate between two: nobody begins the next but one before all have
/// read.
struct alignas(kLineBytes) Given {
  std::atomic<std::uint64_t> number;  // of the gather
  GatherBlock block;
};

/// Where the PE sleeps, and what it gives to gathers.
struct Front {
  alignas(kLineBytes) Doorbell bell;
  Given given[2];
};

/// A PE's memory: its front, then a ring for each PE of its host that sends to it, by their ranks there.
class Memory {
 public:
  Memory(std::uint32_t ranks, std::uint32_t slots, std::size_t frame_bytes)
      : slots_{slots},
        slot_bytes_{sizeof(Slot) + whole_lines(frame_bytes)},
        segment_{sizeof(Front) + std::size_t{ranks} * slots * slot_bytes_} {}

  Segment& segment() { return segment_; }
  std::size_t ring_bytes() const { return slots_ * slot_bytes_; }
  Doorbell& bell() const { return reinterpret_cast<Front*>(segment_.at())->bell; }
  Given& given(std::uint64_t gather) const {
    return reinterpret_cast<Front*>(segment_.at())->given[gather % 2];
  }
  Slot& slot(std::uint32_t from, std::uint32_t number) const {
    std::byte* const rings = segment_.at() + sizeof(Front);
    return *reinterpret_cast<Slot*>(rings + (std::size_t{from} * slots_ + number) * slot_bytes_);
  }

 private:
  const std::uint32_t slots_;
  const std::size_t slot_bytes_;
  Segment segment_;
};

/// Contract. As Transport's. Rings have one sender and one receiver: no word is written by both at a time.
/// Ordering. [ring frame] what a sender wrote into a slot   happens before  its receiver reads it
///           [ring reuse] what the receiver read there      happens before  the sender writes the next frame
///           [given]      a PE's block of a gather          happens before  another one has all blocks
///           [bell store] A sender fills a slot, then looks whether the receiver sleeps; a receiver announces
///           its sleep, then looks into the slots. A PE gives to a gather, then looks whether all have given,
///           and if so who sleeps: of PEs that give at the same time, the last one sees them all. Stores and
///           loads are sequentially consistent.
/// Progress. Only what a receiver may wait for wakes it: a frame, and the last block of a gather. A sender
///           that waits for a free slot finds it after its nap.
class SharedTransport final : public Transport {
 public:
  SharedTransport(std::unique_ptr<Transport> inner, TransportLimits limits)
      : inner_{std::move(inner)},
        limits_{limits},
        slots_{std::clamp(limits.receives, 1u, kMostSlots)},
        rank_of_(inner_->n_pes(), kNoRank) {
    for (std::uint32_t pe = 0; pe < n_pes(); ++pe) {
      if (pe == inner_->pe()) rank_ = static_cast<std::uint32_t>(pes_.size());
      if (pe != inner_->pe() && inner_->find_process(pe).id == 0) continue;  // on another host
      rank_of_[pe] = static_cast<std::uint32_t>(pes_.size());
      pes_.push_back(pe);
    }
    for (std::size_t rank = 0; rank < pes_.size(); ++rank)
      peers_.emplace_back(pes_.size(), slots_, limits.frame_bytes);
  }

  /// Collective. Why all PEs do without shared memory, of the first PE that has a reason; "" if none has.
  /// `is_error`: some PE must share.
  std::string open_all(Wish wish, bool* is_error) {
    Segment& mine = peers_[rank_].memory.segment();
    std::string why = wish == Wish::kOff ? "it has --peer-memory off" : mine.make();
    const SegmentFile file = mine.file();
    const std::vector<GatherBlock> offers =
        gather_now(*inner_, {why.empty() ? 1u : 0u, static_cast<std::uint64_t>(file.number), mine.bytes(),
                             wish == Wish::kMust ? 1u : 0u, file.inode});
    *is_error =
        std::any_of(offers.begin(), offers.end(), [](const auto& offer) { return offer.values[3] != 0; });
    for (std::uint32_t rank = 0; rank < pes_.size() && why.empty(); ++rank) {
      const GatherBlock& offer = offers[pes_[rank]];
      // Who offers nothing says why itself.
      if (rank == rank_ || offer.values[0] == 0) continue;
      if (offer.values[2] != mine.bytes()) {
        why = fmt::format("PE {} has {} bytes of rings where this one has {}: settings of buffers differ",
                          pes_[rank], offer.values[2], mine.bytes());
      } else {
        why =
            peers_[rank].memory.segment().open(inner_->find_process(pes_[rank]).id,
                                               {static_cast<std::int64_t>(offer.values[1]), offer.values[4]});
      }
    }
    std::string reason = first_reason(*inner_, why);
    mine.close_file();  // now that all have opened it
    return reason;
  }
  std::unique_ptr<Transport> take_inner() { return std::move(inner_); }
  /// Everything goes by `other`, and name() says why.
  void go_without(std::unique_ptr<Transport> other, std::string why) {
    inner_ = std::move(other);
    why_not_ = std::move(why);
    rank_of_.assign(rank_of_.size(), kNoRank);
    pes_.clear();
    peers_.clear();
  }

  bool is_for_any_thread() const override { return inner_->is_for_any_thread(); }
  std::uint32_t pe() const override { return inner_->pe(); }
  std::uint32_t n_pes() const override { return static_cast<std::uint32_t>(rank_of_.size()); }
  std::uint32_t world_rank(std::uint32_t of_pe) const override { return inner_->world_rank(of_pe); }
  std::uint32_t pes_on_host() const override { return inner_->pes_on_host(); }
  std::uint64_t frame_memory_bytes() const override {
    // Its own rings, and those that it fills.
    const std::uint64_t mine = pes_.empty() ? 0 : 2 * pes_.size() * peers_[rank_].memory.ring_bytes();
    return mine + (has_other_hosts() ? inner_->frame_memory_bytes() : 0);
  }
  std::string name() const override {
    if (!why_not_.empty()) return fmt::format("{}, no shared memory: {}", inner_->name(), why_not_);
    return inner_->name() + (pes_.size() > 1 ? ", shared memory" : "");
  }

  bool try_send(std::uint32_t to, std::span<const std::byte> bytes, void* token) override {
    const std::uint32_t rank = rank_of_[to];
    if (rank == kNoRank) return inner_->try_send(to, bytes, token);
    Slot* const slot = find_slot(rank, bytes.size());
    if (slot == nullptr) return false;
    std::memcpy(slot->frame(), bytes.data(), bytes.size());
    send(rank, *slot, bytes.size(), token);
    return true;
  }
  bool writes_in_place(std::uint32_t to) const override {
    return rank_of_[to] != kNoRank || inner_->writes_in_place(to);
  }
  bool try_write(std::uint32_t to, std::size_t bytes, FrameWriter& writer, void* token) override {
    const std::uint32_t rank = rank_of_[to];
    if (rank == kNoRank) return inner_->try_write(to, bytes, writer, token);
    Slot* const slot = find_slot(rank, bytes);
    if (slot == nullptr) return false;
    writer.write(slot->frame());
    send(rank, *slot, bytes, token);
    return true;
  }

  void poll_sent(std::vector<void*>& tokens) override {
    if (has_other_hosts()) inner_->poll_sent(tokens);
    if (under_way_ == 0) return;
    for (Peer& peer : peers_) {
      while (!peer.under_way.empty()) {
        const std::uint64_t first = peer.sent - peer.under_way.size();
        const Slot& slot = peer.memory.slot(rank_, static_cast<std::uint32_t>(first % slots_));
        if (slot.state.load(std::memory_order_relaxed) < 3 * (first / slots_) + 2) break;
        tokens.push_back(peer.under_way.front());
        peer.under_way.pop_front();
        --under_way_;
      }
    }
  }

  Doorbell* bell() override { return pes_.size() > 1 ? &peers_[rank_].memory.bell() : nullptr; }

  /// The peers of the host and the other transport take turns.
  std::size_t receive_bytes() const override { return has_other_hosts() ? inner_->receive_bytes() : 0; }
  void receive_into(const std::shared_ptr<std::byte>& memory) override { inner_->receive_into(memory); }
  std::optional<Frame> try_receive() override {
    if (held_ == limits_.receives) return std::nullopt;
    const auto n_ranks = static_cast<std::uint32_t>(pes_.size());
    const std::uint32_t turns = n_ranks + (has_other_hosts() ? 1 : 0);
    for (std::uint32_t i = 0; i < turns; ++i) {
      next_ = next_ + 1 < turns ? next_ + 1 : 0;
      std::optional<Frame> frame = next_ == n_ranks ? inner_->try_receive() : try_receive_from(next_);
      if (!frame) continue;
      ++held_;
      return frame;
    }
    return std::nullopt;
  }

  void release(const Frame& frame) override {
    --held_;
    if ((frame.slot & kSharedFrame) == 0) return inner_->release(frame);
    Slot& slot = peers_[rank_].memory.slot((frame.slot & ~kSharedFrame) >> 8, frame.slot & 0xffu);
    slot.state.store(slot.state.load(std::memory_order_relaxed) + 1,
                     std::memory_order_release);  // [ring reuse]
  }

  void begin_gather(const GatherBlock& mine) override {
    if (has_other_hosts()) return inner_->begin_gather(mine);
    Given& given = peers_[rank_].memory.given(++gathers_);
    given.block = mine;
    given.number.store(gathers_, std::memory_order_seq_cst);  // [given] [bell store]
    seen_ = 0;
    if (!have_all_given()) return;
    for (const Peer& peer : peers_) peer.memory.bell().ring_after_store();
  }

  bool test_gather(std::span<GatherBlock> all) override {
    if (has_other_hosts()) return inner_->test_gather(all);
    if (!have_all_given()) return false;
    for (std::uint32_t pe = 0; pe < n_pes(); ++pe) all[pe] = peers_[pe].memory.given(gathers_).block;
    return true;
  }

  void begin_exchange(std::shared_ptr<Exchange> exchange) override {
    inner_->begin_exchange(std::move(exchange));
  }
  bool test_exchange() override { return inner_->test_exchange(); }

  std::string find_dead_peer() override { return inner_->find_dead_peer(); }
  PeerProcess find_process(std::uint32_t other) const override { return inner_->find_process(other); }

  std::vector<void*> close(bool orderly) override {
    std::vector<void*> tokens = inner_->close(orderly);
    for (const Peer& peer : peers_) tokens.insert(tokens.end(), peer.under_way.begin(), peer.under_way.end());
    return tokens;
  }
  [[noreturn]] void abort(int status) override {
    inner_->abort(status);
    std::_Exit(status);  // g++ does not know that a virtual function never returns
  }

 private:
  static constexpr std::uint32_t kNoRank = ~0u;
  struct Peer {
    Peer(std::size_t ranks, std::uint32_t slots, std::size_t frame_bytes)
        : memory{static_cast<std::uint32_t>(ranks), slots, frame_bytes} {}
    Memory memory;
    std::uint64_t sent = 0, received = 0;
    std::deque<void*> under_way;
  };

  bool has_other_hosts() const { return pes_.size() < rank_of_.size(); }

  /// To the gather that is under way.
  bool have_all_given() {
    while (seen_ < n_pes()) {
      const Given& given = peers_[seen_].memory.given(gathers_);
      if (given.number.load(std::memory_order_seq_cst) < gathers_) return false;  // [given] [bell store]
      ++seen_;
    }
    return true;
  }

  /// The next slot to a PE of this host; null: its receiver has not released it.
  Slot* find_slot(std::uint32_t rank, std::size_t bytes) {
    if (bytes > limits_.frame_bytes) {
      throw Error(Error::Kind::kNetwork, fmt::format("shared memory: a frame of {} bytes is longer than {}",
                                                     bytes, limits_.frame_bytes));
    }
    const Peer& peer = peers_[rank];
    Slot& slot = peer.memory.slot(rank_, static_cast<std::uint32_t>(peer.sent % slots_));
    return slot.state.load(std::memory_order_acquire) == 3 * (peer.sent / slots_) ? &slot
                                                                                  : nullptr;  // [ring reuse]
  }
  void send(std::uint32_t rank, Slot& slot, std::size_t bytes, void* token) {
    Peer& peer = peers_[rank];
    slot.bytes = bytes;
    slot.state.store(3 * (peer.sent / slots_) + 1, std::memory_order_seq_cst);  // [ring frame] [bell store]
    peer.memory.bell().ring_after_store();
    peer.under_way.push_back(token);
    ++peer.sent;
    ++under_way_;
  }

  std::optional<Frame> try_receive_from(std::uint32_t rank) {
    std::uint64_t& received = peers_[rank].received;
    const auto number = static_cast<std::uint32_t>(received % slots_);
    const std::uint64_t full = 3 * (received / slots_) + 1;
    Slot& slot = peers_[rank_].memory.slot(rank, number);
    if (slot.state.load(std::memory_order_seq_cst) != full) return std::nullopt;  // [ring frame] [bell store]
    slot.state.store(full + 1, std::memory_order_relaxed);
    ++received;
    return Frame{{slot.frame(), static_cast<std::size_t>(slot.bytes)}, kSharedFrame | rank << 8 | number};
  }

  std::unique_ptr<Transport> inner_;
  std::string why_not_;  // PEs of this host do not share memory
  const TransportLimits limits_;
  const std::uint32_t slots_;
  std::vector<std::uint32_t> rank_of_;  // a PE: its rank on this host, or kNoRank
  std::vector<std::uint32_t> pes_;      // by rank
  std::uint32_t rank_ = 0;
  std::deque<Peer> peers_;  // by rank, this PE among them
  std::uint32_t held_ = 0;  // frames received and not released, the other transport's among them
  std::uint32_t next_ = 0;
  std::size_t under_way_ = 0;
  std::uint64_t gathers_ = 0;
  std::uint32_t seen_ = 0;  // PEs that have given to the gather that is under way
};

}  // namespace

std::unique_ptr<Transport> connect(std::unique_ptr<Transport> between_hosts, TransportLimits limits,
                                   Wish wish, const Otherwise& otherwise) {
  auto transport = std::make_unique<SharedTransport>(std::move(between_hosts), limits);
  bool is_error = false;
  std::string why;
  try {
    why = transport->open_all(wish, &is_error);
  } catch (...) {
    close_and_rethrow(*transport);
  }
  if (why.empty()) return transport;
  std::unique_ptr<Transport> inner = transport->take_inner();
  if (!is_error) {
    if (otherwise) inner = otherwise(std::move(inner));
    if (wish == Wish::kOff) return inner;
    transport->go_without(std::move(inner), std::move(why));
    return transport;
  }
  inner->close(true);
  throw Error(
      Error::Kind::kNetwork,
      fmt::format(
          "peer_memory is on, and PEs cannot share memory: {}; with --peer-memory auto they go without",
          why));
}

}  // namespace esker::shared
