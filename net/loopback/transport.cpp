// Frames are copied into the receiver's inbox under a lock.
#include <esker/net/loopback/transport.hpp>

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>

#include <esker/device/error.hpp>

namespace esker::loopback {
namespace {

constexpr std::size_t kInboxFrames = 64;

// 8-byte words, so that every frame is aligned.
using Words = std::vector<std::uint64_t>;

struct Packet {
  std::size_t bytes;
  Words words;
};

}  // namespace

class World::Shared {
 public:
  explicit Shared(std::uint32_t n)
      : inbox(n),
        blocks{std::vector<GatherBlock>(n), std::vector<GatherBlock>(n)},
        exchanges{std::vector<std::shared_ptr<const Exchange>>(n),
                  std::vector<std::shared_ptr<const Exchange>>(n)} {}

  struct Inbox {
    std::mutex mutex;
    std::deque<Packet> packets;  // guarded by mutex
  };
  std::deque<Inbox> inbox;
  Tamper tamper;

  // Gathers alternate between two sets of blocks: nobody starts the next but one before all have read.
  std::mutex gather_mutex;
  std::vector<GatherBlock> blocks[2];  // guarded by gather_mutex
  std::uint64_t arrived[2] = {0, 0};   // guarded by gather_mutex; grows by n a gather
  // Exchanges likewise, but that each ends when all have taken what is theirs: then nobody reads another
  // one's.
  std::vector<std::shared_ptr<const Exchange>> exchanges[2];  // guarded by gather_mutex
  std::uint64_t begun[2] = {0, 0};           // guarded by gather_mutex; grow by n an exchange
  std::uint64_t taken[2] = {0, 0};           // guarded by gather_mutex
  std::atomic<std::int64_t> left_early{-1};  // a PE that closed without its peers
};

namespace {

class LoopbackTransport final : public Transport {
 public:
  LoopbackTransport(World::Shared& world, std::uint32_t pe, TransportLimits limits)
      : world_{world}, pe_{pe}, limits_{limits} {}

  bool is_for_any_thread() const override { return true; }
  std::uint32_t pe() const override { return pe_; }
  std::uint32_t n_pes() const override { return static_cast<std::uint32_t>(world_.inbox.size()); }
  std::uint32_t pes_on_host() const override { return n_pes(); }
  std::string name() const override { return "loopback"; }

  bool try_send(std::uint32_t pe, std::span<const std::byte> bytes, void* token) override {
    class Copy final : public FrameWriter {
     public:
      explicit Copy(std::span<const std::byte> from) : from_{from} {}
      void write(std::byte* frame) override { std::memcpy(frame, from_.data(), from_.size()); }

     private:
      std::span<const std::byte> from_;
    } copy(bytes);
    return try_write(pe, bytes.size(), copy, token);
  }
  bool writes_in_place(std::uint32_t) const override { return true; }
  bool try_write(std::uint32_t pe, std::size_t size, FrameWriter& writer, void* token) override {
    if (size > limits_.frame_bytes) {
      throw Error(Error::Kind::kNetwork,
                  fmt::format("loopback: a frame of {} bytes is longer than {}", size, limits_.frame_bytes));
    }
    World::Shared::Inbox& inbox = world_.inbox[pe];
    const std::lock_guard lock(inbox.mutex);
    if (inbox.packets.size() == kInboxFrames) return false;
    Words words((size + 7) / 8);
    auto* const frame = reinterpret_cast<std::byte*>(words.data());
    writer.write(frame);
    if (world_.tamper) {
      std::vector<std::byte> copy(frame, frame + size);
      if (world_.tamper(pe_, pe, copy) == Fate::kLose) {
        sent_.push_back(token);
        return true;
      }
      size = copy.size();
      words.resize((size + 7) / 8);
      std::memcpy(words.data(), copy.data(), size);
    }
    inbox.packets.push_back({size, std::move(words)});
    sent_.push_back(token);
    return true;
  }

  void poll_sent(std::vector<void*>& tokens) override {
    tokens.insert(tokens.end(), sent_.begin(), sent_.end());
    sent_.clear();
  }

  std::optional<Frame> try_receive() override {
    if (held_.size() == limits_.receives) return std::nullopt;
    World::Shared::Inbox& inbox = world_.inbox[pe_];
    const std::lock_guard lock(inbox.mutex);
    if (inbox.packets.empty()) return std::nullopt;
    held_.push_back({next_slot_++, std::move(inbox.packets.front())});
    inbox.packets.pop_front();
    const Packet& packet = held_.back().packet;
    return Frame{std::as_bytes(std::span(packet.words)).first(packet.bytes), held_.back().slot};
  }

  void release(const Frame& frame) override {
    std::erase_if(held_, [&](const Held& held) { return held.slot == frame.slot; });
  }

  void begin_gather(const GatherBlock& mine) override {
    const std::lock_guard lock(world_.gather_mutex);
    world_.blocks[gathers_ % 2][pe_] = mine;
    ++world_.arrived[gathers_ % 2];
  }

  bool test_gather(std::span<GatherBlock> all) override {
    const std::lock_guard lock(world_.gather_mutex);
    if (world_.arrived[gathers_ % 2] < (gathers_ / 2 + 1) * n_pes()) return false;
    std::copy(world_.blocks[gathers_ % 2].begin(), world_.blocks[gathers_ % 2].end(), all.begin());
    ++gathers_;
    return true;
  }

  void begin_exchange(std::shared_ptr<Exchange> exchange) override {
    exchange_ = std::move(exchange);
    has_taken_ = false;
    const std::lock_guard lock(world_.gather_mutex);
    world_.exchanges[exchanges_ % 2][pe_] = exchange_;
    ++world_.begun[exchanges_ % 2];
  }

  bool test_exchange() override {
    const std::size_t set = exchanges_ % 2;
    const std::uint64_t all_so_far = (exchanges_ / 2 + 1) * n_pes();
    if (!has_taken_) {
      std::vector<std::shared_ptr<const Exchange>> all;
      {
        const std::lock_guard lock(world_.gather_mutex);
        if (world_.begun[set] < all_so_far) return false;
        all = world_.exchanges[set];
      }
      take_from(all);
      has_taken_ = true;
      const std::lock_guard lock(world_.gather_mutex);
      ++world_.taken[set];
    }
    const std::lock_guard lock(world_.gather_mutex);
    if (world_.taken[set] < all_so_far) return false;
    world_.exchanges[set][pe_].reset();
    exchange_.reset();
    ++exchanges_;
    return true;
  }

  std::string find_dead_peer() override {
    const std::int64_t pe = world_.left_early.load();
    return pe < 0 || pe == pe_ ? std::string{} : fmt::format("PE {} has left the job", pe);
  }

  PeerProcess find_process(std::uint32_t) const override { return {}; }

  std::vector<void*> close(bool orderly) override {
    std::int64_t nobody = -1;
    if (!orderly) world_.left_early.compare_exchange_strong(nobody, pe_);
    return {};
  }

  [[noreturn]] void abort(int status) override {
    std::fflush(nullptr);
    std::_Exit(status);
  }

 private:
  /// What the others have given for this PE.
  void take_from(const std::vector<std::shared_ptr<const Exchange>>& all) {
    Exchange& mine = *exchange_;
    const auto take = [&](std::uint32_t pe, std::size_t from, std::size_t to, std::size_t bytes) {
      if (bytes > 0) std::memcpy(mine.receive.data() + to, all[pe]->send.data() + from, bytes);
    };
    using Kind = Exchange::Kind;
    const std::size_t block = mine.block_bytes;
    if (mine.kind == Kind::kBroadcast && pe_ != mine.root) take(mine.root, 0, 0, block);
    if (mine.kind == Kind::kScatter) take(mine.root, pe_ * block, 0, block);
    if (mine.kind == Kind::kAllGather || (mine.kind == Kind::kGather && pe_ == mine.root)) {
      for (std::uint32_t pe = 0; pe < n_pes(); ++pe) take(pe, 0, pe * block, block);
    }
    if (mine.kind == Kind::kAllToAll) {
      for (std::uint32_t pe = 0; pe < n_pes(); ++pe) {
        take(pe, Exchange::start_of(all[pe]->send_bytes, pe_), Exchange::start_of(mine.receive_bytes, pe),
             mine.receive_bytes[pe]);
      }
    }
  }

  struct Held {
    std::uint32_t slot;
    Packet packet;
  };
  World::Shared& world_;
  const std::uint32_t pe_;
  const TransportLimits limits_;
  std::vector<void*> sent_;
  std::deque<Held> held_;
  std::uint32_t next_slot_ = 0;
  std::uint64_t gathers_ = 0;
  std::uint64_t exchanges_ = 0;
  std::shared_ptr<Exchange> exchange_;  // under way
  bool has_taken_ = false;              // of it, what is this PE's
};

}  // namespace

World::World(std::uint32_t n_pes) : shared_{std::make_unique<Shared>(n_pes)} {}
World::~World() = default;

std::unique_ptr<Transport> World::connect(std::uint32_t pe, TransportLimits limits) {
  return std::make_unique<LoopbackTransport>(*shared_, pe, limits);
}

void World::set_tamper(Tamper tamper) { shared_->tamper = std::move(tamper); }

}  // namespace esker::loopback
