// A ring of frames for each ordered pair of PEs of a host, in the receiver's memory, and a place for gathers.
#include <esker/net/shared/transport.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <new>
#include <thread>
#include <utility>

#include <esker/device/error.hpp>
#include <esker/device/platform.hpp>

namespace esker::shared {
namespace {

constexpr std::uint32_t kMostSlots = 4;           // of a ring: few stay in a cache
constexpr std::uint32_t kSharedFrame = 1u << 31;  // of Frame::slot: {1, PE: 23 bits, slot: 8 bits}
constexpr std::chrono::seconds kPeersOpen{60};

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

/// A PE's memory: what it gives to gathers, then a ring for each PE of the job that sends to it. Zeros to
/// begin with; pages that nobody touches do not exist.
class Memory {
 public:
  Memory(std::uint32_t n_pes, std::uint32_t slots, std::size_t frame_bytes)
      : slots_{slots},
        slot_bytes_{sizeof(Slot) + whole_lines(frame_bytes)},
        bytes_{2 * sizeof(Given) + std::size_t{n_pes} * slots * slot_bytes_} {}
  ~Memory() {
    if (at_ != nullptr) munmap(at_, bytes_);
    if (file_ >= 0) close(file_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// "" or what went wrong.
  std::string make() {
    file_ = memfd_create("esker", MFD_CLOEXEC);
    if (file_ < 0) return fmt::format("memfd_create: {}", std::strerror(errno));
    if (ftruncate(file_, static_cast<off_t>(bytes_)) != 0)
      return fmt::format("ftruncate to {} bytes: {}", bytes_, std::strerror(errno));
    return map();
  }
  std::string open(std::int64_t process, int file) {
    const std::string path = fmt::format("/proc/{}/fd/{}", process, file);
    file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file_ < 0) return fmt::format("{}: {}", path, std::strerror(errno));
    return map();
  }
  int file() const { return file_; }

  Given& given(std::uint64_t gather) const { return reinterpret_cast<Given*>(at_)[gather % 2]; }
  Slot& slot(std::uint32_t from, std::uint32_t number) const {
    std::byte* const rings = at_ + 2 * sizeof(Given);
    return *reinterpret_cast<Slot*>(rings + (std::size_t{from} * slots_ + number) * slot_bytes_);
  }

 private:
  std::string map() {
    void* const at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (at == MAP_FAILED) return fmt::format("mapping {} bytes: {}", bytes_, std::strerror(errno));
    at_ = static_cast<std::byte*>(at);
    return {};
  }

  const std::uint32_t slots_;
  const std::size_t slot_bytes_, bytes_;
  int file_ = -1;
  std::byte* at_ = nullptr;
};

/// Contract. As Transport's. Rings have one sender and one receiver: no word is written by both at a time.
/// Ordering. [frame] what a sender wrote into a slot      happens before  its receiver reads it
///           [taken] what the receiver read there         happens before  the sender writes the next frame
///           [given] a PE's block of a gather             happens before  another one has all blocks
class SharedTransport final : public Transport {
 public:
  SharedTransport(std::unique_ptr<Transport> inner, TransportLimits limits)
      : inner_{std::move(inner)},
        limits_{limits},
        slots_{std::clamp(limits.receives, 1u, kMostSlots)},
        peers_(inner_->n_pes()) {}

  /// Collective. "" on all PEs, or not on any: then why.
  std::string open_all() {
    std::string why;
    Memory& mine = memory_of(pe());
    why = mine.make();
    const std::vector<GatherBlock> offers =
        gather({why.empty() ? 1u : 0u, static_cast<std::uint64_t>(mine.file())});
    for (std::uint32_t other = 0; other < n_pes() && why.empty(); ++other) {
      const std::int64_t process = inner_->find_process(other).id;
      if (other != pe() && process == 0) continue;  // on another host
      if (offers[other].values[0] == 0) {
        why = fmt::format("PE {} has no memory to share", other);
      } else if (other != pe()) {
        why = memory_of(other).open(process, static_cast<int>(offers[other].values[1]));
        if (!why.empty()) why = fmt::format("the memory of PE {} cannot be opened: {}", other, why);
      }
      ++on_host_;
    }
    // The descriptors are open until all have opened them, and words of the first gather must not be reused.
    for (const GatherBlock& block : gather({why.empty() ? 1u : 0u, 0})) {
      if (why.empty() && block.values[0] == 0) why = "another PE cannot open a peer's";
    }
    return why;
  }
  std::unique_ptr<Transport> give_up() { return std::move(inner_); }

  bool is_for_any_thread() const override { return inner_->is_for_any_thread(); }
  std::uint32_t pe() const override { return inner_->pe(); }
  std::uint32_t n_pes() const override { return inner_->n_pes(); }
  std::uint32_t pes_on_host() const override { return inner_->pes_on_host(); }
  std::uint64_t frame_memory_bytes() const override {
    // Its own rings, and those that it fills.
    return 2 * std::uint64_t{on_host_} * slots_ * (sizeof(Slot) + whole_lines(limits_.frame_bytes));
  }
  std::string name() const override { return inner_->name() + ", shared memory"; }

  bool try_send(std::uint32_t to, std::span<const std::byte> bytes, void* token) override {
    Peer& peer = peers_[to];
    if (peer.memory == nullptr) return inner_->try_send(to, bytes, token);
    Slot& slot = peer.memory->slot(pe(), static_cast<std::uint32_t>(peer.sent % slots_));
    const std::uint64_t round = peer.sent / slots_;
    if (slot.state.load(std::memory_order_acquire) != 3 * round) return false;  // [taken]
    std::memcpy(slot.frame(), bytes.data(), bytes.size());
    slot.bytes = bytes.size();
    slot.state.store(3 * round + 1, std::memory_order_release);  // [frame]
    peer.under_way.push_back(token);
    ++peer.sent;
    ++under_way_;
    return true;
  }

  void poll_sent(std::vector<void*>& tokens) override {
    if (has_other_hosts()) inner_->poll_sent(tokens);
    if (under_way_ == 0) return;
    for (Peer& peer : peers_) {
      while (!peer.under_way.empty()) {
        const std::uint64_t first = peer.sent - peer.under_way.size();
        const Slot& slot = peer.memory->slot(pe(), static_cast<std::uint32_t>(first % slots_));
        if (slot.state.load(std::memory_order_relaxed) < 3 * (first / slots_) + 2) break;
        tokens.push_back(peer.under_way.front());
        peer.under_way.pop_front();
        --under_way_;
      }
    }
  }

  std::optional<Frame> try_receive() override {
    if (held_ < limits_.receives) {
      for (std::uint32_t i = 0; i < n_pes(); ++i) {
        next_ = next_ + 1 < n_pes() ? next_ + 1 : 0;
        Peer& peer = peers_[next_];
        if (peer.memory == nullptr) continue;
        const auto number = static_cast<std::uint32_t>(peer.received % slots_);
        Slot& slot = peers_[pe()].memory->slot(next_, number);
        if (slot.state.load(std::memory_order_acquire) != 3 * (peer.received / slots_) + 1)
          continue;  // [frame]
        slot.state.store(3 * (peer.received / slots_) + 2, std::memory_order_relaxed);
        ++peer.received;
        ++held_;
        return Frame{{slot.frame(), static_cast<std::size_t>(slot.bytes)},
                     kSharedFrame | next_ << 8 | number};
      }
    }
    return has_other_hosts() ? inner_->try_receive() : std::nullopt;
  }

  void release(const Frame& frame) override {
    if ((frame.slot & kSharedFrame) == 0) return inner_->release(frame);
    Slot& slot = peers_[pe()].memory->slot((frame.slot & ~kSharedFrame) >> 8, frame.slot & 0xffu);
    slot.state.store(slot.state.load(std::memory_order_relaxed) + 1, std::memory_order_release);  // [taken]
    --held_;
  }

  void begin_gather(const GatherBlock& mine) override {
    if (has_other_hosts()) return inner_->begin_gather(mine);
    Given& given = peers_[pe()].memory->given(++gathers_);
    given.block = mine;
    given.number.store(gathers_, std::memory_order_release);  // [given]
    seen_ = 0;
  }

  bool test_gather(std::span<GatherBlock> all) override {
    if (has_other_hosts()) return inner_->test_gather(all);
    for (; seen_ < n_pes(); ++seen_) {
      if (peers_[seen_].memory->given(gathers_).number.load(std::memory_order_acquire) < gathers_)
        return false;  // [given]
    }
    for (std::uint32_t other = 0; other < n_pes(); ++other)
      all[other] = peers_[other].memory->given(gathers_).block;
    return true;
  }

  std::string find_dead_peer() override { return inner_->find_dead_peer(); }
  PeerProcess find_process(std::uint32_t other) const override { return inner_->find_process(other); }

  std::vector<void*> close(bool orderly) override {
    return inner_->close(orderly);
  }  // sends have been copied
  [[noreturn]] void abort(int status) override { inner_->abort(status); }

 private:
  struct Peer {
    std::unique_ptr<Memory> memory;  // null: on another host
    std::uint64_t sent = 0, received = 0;
    std::deque<void*> under_way;
  };

  Memory& memory_of(std::uint32_t other) {
    peers_[other].memory = std::make_unique<Memory>(n_pes(), slots_, limits_.frame_bytes);
    return *peers_[other].memory;
  }
  bool has_other_hosts() const { return on_host_ < n_pes(); }

  /// By the other transport.
  std::vector<GatherBlock> gather(std::array<std::uint64_t, 2> values) {
    GatherBlock mine;
    std::copy(values.begin(), values.end(), mine.values.begin());
    std::vector<GatherBlock> all(n_pes());
    inner_->begin_gather(mine);
    const auto until = std::chrono::steady_clock::now() + kPeersOpen;
    while (!inner_->test_gather(all)) {
      if (const std::string dead = inner_->find_dead_peer(); !dead.empty())
        throw Error(Error::Kind::kNetwork, "opening shared memory: " + dead);
      if (std::chrono::steady_clock::now() > until)
        throw Error(Error::Kind::kNetwork, "opening shared memory: the other PEs have not come");
      std::this_thread::yield();
    }
    return all;
  }

  std::unique_ptr<Transport> inner_;
  const TransportLimits limits_;
  const std::uint32_t slots_;
  std::vector<Peer> peers_;
  std::uint32_t on_host_ = 0;
  std::uint32_t held_ = 0, next_ = 0;
  std::size_t under_way_ = 0;
  std::uint64_t gathers_ = 0;
  std::uint32_t seen_ = 0;  // PEs that have given to the gather that is under way
};

}  // namespace

std::unique_ptr<Transport> connect(std::unique_ptr<Transport> between_hosts, TransportLimits limits,
                                   std::string* why_not) {
  auto transport = std::make_unique<SharedTransport>(std::move(between_hosts), limits);
  const std::string why = transport->open_all();
  if (why_not != nullptr) *why_not = why;
  if (!why.empty()) return transport->give_up();
  return transport;
}

}  // namespace esker::shared
