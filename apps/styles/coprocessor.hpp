// The coprocessor model: kernels fill a queue a destination, the host exchanges the queues when the kernel
// has ended, another kernel applies them (thesis, section 3.1.1, Table 3-1a).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <esker/lane.hpp>

#include "exchange.hpp"
#include "message.hpp"

namespace styles {

// lines: device
/// A lane that waits for its next launch.
template <class State>
struct Waiting {
  State state;
  std::uint64_t lane;  // kNoLane: it has ended, or there is none
};
inline constexpr std::uint64_t kNoLane = ~std::uint64_t{0};

/// A kernel that lets each lane of a chunk make up to `rounds` messages and puts them into the queues. A
/// group sorts its messages by destination in scratchpad and reserves once for each (leader-level reserve).
template <class S>
struct Collect {
  using Message = typename S::Message;
  S source;
  esker::SymmetricArray<Waiting<typename S::State>> waiting;
  esker::SymmetricArray<Message> queues;         // PE after PE, `capacity` messages each
  esker::SymmetricArray<std::uint32_t> lengths;  // of each queue; the last: lanes that have not ended
  std::uint64_t capacity;
  std::uint64_t first;  // lane that this chunk starts with
  std::byte* heap;
  std::uint32_t n_pes;
  std::uint32_t rounds;
  bool is_fresh;  // lanes begin here; otherwise they go on

  ESKER_HD esker::DeviceAtomic<std::uint32_t>& length(std::uint64_t i) const {
    return reinterpret_cast<esker::DeviceAtomic<std::uint32_t>&>(lengths[i]);
  }

  ESKER_HD Waiting<typename S::State> begin(std::uint64_t i) const {
    return is_fresh ? Waiting<typename S::State>{source.start(first + i), first + i} : waiting[i];
  }
  /// The lane's next message, if it has one.
  ESKER_HD bool next(Waiting<typename S::State>& mine, Message& message) const {
    if (mine.lane != kNoLane && source.next(mine.state, message)) return true;
    mine.lane = kNoLane;
    return false;
  }
  ESKER_HD void store(std::uint64_t place, Message message) const {
    const auto offset = reinterpret_cast<const std::byte*>(message.target) - heap;
    message.target = reinterpret_cast<decltype(message.target)>(offset);
    queues[message.pe * capacity + place] = message;
  }

  ESKER_HD void run(const esker::Lane& lane) const {
    auto mine = begin(lane.global_id());
    Message message{};
    for (std::uint32_t round = 0; round < rounds && next(mine, message); ++round)
      store(length(message.pe).fetch_add_relaxed(1), message);
    waiting[lane.global_id()] = mine;
    if (mine.lane != kNoLane) (void)length(n_pes).fetch_add_relaxed(1);
  }

  ESKER_HD void run(esker::GroupLane& lane) const {
    auto& counts = lane.template scratch<esker::DestinationCounts>();
    auto& starts = lane.template scratch<Starts>();
    auto group = lane.group();
    auto mine = begin(lane.global_id());
    for (std::uint32_t round = 0; round < rounds; ++round) {
      Message message{};
      const bool has = next(mine, message);
      const std::uint32_t place = has ? counts.of[message.pe].fetch_add_relaxed(1) : 0;
      group.sync();
      for (std::uint32_t d = lane.lane(); d < n_pes; d += lane.group_lanes()) {
        const std::uint32_t count = counts.of[d].load_relaxed();
        starts.of[d] = count == 0 ? 0 : length(d).fetch_add_relaxed(count);
        counts.of[d].store_relaxed(0);
      }
      group.sync();
      if (has) store(starts.of[message.pe] + place, message);
      group.sync();
      // Rounds are many where few lanes are left, and these may be others'.
      if (round % 16 == 15 && group.reduce(mine.lane != kNoLane ? 1u : 0u, esker::Sum{}) == 0) break;
    }
    waiting[lane.global_id()] = mine;
    const std::uint32_t left = group.reduce(mine.lane != kNoLane ? 1u : 0u, esker::Sum{});
    if (lane.lane() == 0 && left > 0) (void)length(n_pes).fetch_add_relaxed(left);
  }

 private:
  struct Starts {
    std::uint32_t of[esker::DestinationCounts::kMost];
  };
};

template <class S>
struct CollectTogether {
  Collect<S> collect;
  ESKER_HD void operator()(esker::GroupLane& lane) const { collect.run(lane); }
};
template <class S>
struct CollectAlone {
  Collect<S> collect;
  ESKER_HD void operator()(esker::Lane lane) const { collect.run(lane); }
};

/// A kernel that applies a queue that has arrived.
template <class Message>
struct ApplyAll {
  esker::SymmetricArray<Message> arrived;
  std::byte* heap;
  ESKER_HD void operator()(esker::WorkItem item) const {
    Message message = arrived[item.global_id()];
    const auto offset = reinterpret_cast<std::uintptr_t>(message.target);
    message.target = reinterpret_cast<decltype(message.target)>(heap + offset);
    message.pe = item.pe();
    message.send(item);
  }
};

// lines: end

// lines: host
/// Bytes of a grown allocation, kept from superstep to superstep.
class Pool {
 public:
  explicit Pool(esker::Runtime& rt) : rt_{rt} {}
  /// Collective; the same size on every PE. The contents are lost when it grows.
  template <class T>
  esker::SymmetricArray<T> array(std::uint64_t count) {
    const std::uint64_t bytes = count * sizeof(T);
    if (bytes > bytes_.size()) {
      if (bytes_.size() > 0) rt_.heap().free(bytes_);
      bytes_ = rt_.heap().allocate<std::byte>(bytes);
    }
    return {reinterpret_cast<T*>(bytes_.data()), count};
  }

 private:
  esker::Runtime& rt_;
  esker::SymmetricArray<std::byte> bytes_;
};

/// Contract. One superstep after the other; collective. Each PE may have another number of lanes.
/// Memory. Two queues of `queue_bytes` a PE, and a chunk's lanes, on the heap.
class Coprocessor {
 public:
  Coprocessor(esker::Runtime& rt, std::uint64_t queue_bytes)
      : rt_{rt},
        queue_bytes_{queue_bytes},
        exchange_{rt},
        queues_{rt},
        arrived_{rt},
        waiting_{rt},
        lengths_{rt} {}

  template <Source S>
  void run(std::uint64_t lanes, const S& source, const char* name) {
    using Message = typename S::Message;
    const std::uint32_t n_pes = rt_.n_pes();
    // A queue holds what a chunk may send, were it all for one PE: that keeps it from overflowing.
    const std::uint64_t capacity = std::max<std::uint64_t>(1, queue_bytes_ / sizeof(Message));
    const auto queues = queues_.array<Message>(n_pes * capacity);
    const auto arrived = arrived_.array<Message>(n_pes * capacity);
    const auto waiting = waiting_.array<Waiting<typename S::State>>(capacity);
    const auto lengths = lengths_.array<std::uint32_t>(n_pes + 1);
    std::vector<std::vector<std::byte>> blocks(n_pes);
    std::uint64_t first = 0;
    std::uint64_t chunk = 0;       // lanes that are under way
    std::uint64_t unfinished = 0;  // of them, which share the queue's room
    for (bool more = true; more;) {
      const bool is_fresh = chunk == 0;
      if (is_fresh) unfinished = chunk = std::min(capacity, lanes - first);
      std::vector<std::uint32_t> counts(n_pes + 1, 0);
      if (chunk > 0) {
        rt_.heap().write(lengths, 0, std::span<const std::uint32_t>(counts));
        const auto rounds = static_cast<std::uint32_t>(capacity / unfinished);
        const Collect<S> collect{source, waiting,           queues, lengths, capacity,
                                 first,  rt_.heap().base(), n_pes,  rounds,  is_fresh};
        if (rt_.runs_on_device()) {
          rt_.launch(chunk, CollectTogether<S>{collect}, name);
        } else {
          rt_.launch(chunk, CollectAlone<S>{collect}, name);
        }
        rt_.quiet();
        rt_.heap().read(lengths, 0, std::span(counts));
      }
      for (std::uint32_t pe = 0; pe < n_pes; ++pe) {
        blocks[pe].resize(counts[pe] * sizeof(Message));
        rt_.heap().read(as_bytes(queues), pe * capacity * sizeof(Message), std::span(blocks[pe]));
        (pe == rt_.pe() ? messages_local_ : messages_remote_) += counts[pe];
      }
      unfinished = counts[n_pes];
      if (unfinished == 0) {
        first += chunk;
        chunk = 0;
      }
      more = exchange_.swap(blocks, chunk > 0 || first < lanes);
      apply(arrived, name);
    }
    rt_.barrier_all();
  }

  std::uint64_t messages_local() const { return messages_local_; }
  std::uint64_t messages_remote() const { return messages_remote_; }
  std::uint64_t buffers_sent() const { return exchange_.blocks_sent(); }
  std::uint64_t bytes_sent() const { return exchange_.bytes_sent(); }

 private:
  template <class T>
  static esker::SymmetricArray<std::byte> as_bytes(esker::SymmetricArray<T> array) {
    return {reinterpret_cast<std::byte*>(array.data()), array.size() * sizeof(T)};
  }

  template <class Message>
  void apply(esker::SymmetricArray<Message> arrived, const char* name) {
    std::uint64_t bytes = 0;
    for (std::uint32_t pe = 0; pe < rt_.n_pes(); ++pe) {
      const std::span<const std::byte> block = exchange_.block_from(pe);
      if (!block.empty()) rt_.heap().write(as_bytes(arrived), bytes, block);
      bytes += block.size();
    }
    if (bytes == 0) return;
    rt_.launch(bytes / sizeof(Message), ApplyAll<Message>{arrived, rt_.heap().base()}, name);
    rt_.quiet();  // the next exchange writes there
  }

  esker::Runtime& rt_;
  std::uint64_t queue_bytes_;
  Exchange exchange_;
  Pool queues_, arrived_, waiting_, lengths_;
  std::uint64_t messages_local_ = 0;
  std::uint64_t messages_remote_ = 0;
};

// lines: end

}  // namespace styles
