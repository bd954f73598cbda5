// Stage 3: numbers closed buffers, sends them to their PEs, and receives frames.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include <esker/net/arrival.hpp>
#include <esker/net/buffer_trace.hpp>
#include <esker/net/grown_memory.hpp>
#include <esker/net/handler_table.hpp>
#include <esker/net/sequence.hpp>
#include <esker/net/submit_queue.hpp>
#include <esker/net/transport.hpp>

namespace esker {

class DeviceEngine;

struct ShippingSettings {
  std::uint32_t destinations;     // n_pes; more in the one-node projection, where all of them are this PE
  std::uint32_t submit_capacity;  // buffers that can be closed and not yet taken
  std::uint64_t grown_limit_bytes;
  Tracer* tracer = nullptr;
};

/// For one peer; read by anyone, for statistics and the hang report.
struct PeerCounters {
  std::atomic<std::uint64_t> messages_sent{0};
  std::atomic<std::uint64_t> buffers_sent{0};
  std::atomic<std::uint64_t> messages_received{0};
  std::atomic<std::uint64_t> buffers_received{0};
  std::atomic<std::uint64_t> buffers_applied{0};
};

/// What a part of a step has moved. Blocks, and control frames that have left, are apart: beside them
/// messages are as late as they are alone.
struct Moved {
  bool messages = false, others = false;
};

/// Contract. The calls of the first part and the counters are for any thread, the rest for the network's
///           owner. A submitted buffer is numbered by destination, sent or kept, and given back to its pool:
///           when its receiver has taken it, or after finish() of the Arrival that it became here.
/// Progress. No call waits.
/// Errors.   Error{kNetwork} for a frame that is damaged, and whatever the transport throws.
class Shipping {
 public:
  Shipping(const ShippingSettings& settings, Transport& transport, const HandlerTable& handlers);
  Shipping(const Shipping&) = delete;
  Shipping& operator=(const Shipping&) = delete;

  // Any thread.
  /// True: the owner should be woken.
  bool submit(Buffer* buffer) { return submitted_.push(buffer); }
  bool was_submitted() const { return !submitted_.was_empty(); }
  GrownMemory& grown() { return grown_; }
  const GrownMemory& grown() const { return grown_; }

  // Owner. Each says whether something moved.
  bool take_submitted();
  Moved ship();
  /// Gives back what receivers have taken.
  Moved collect();

  /// Before the first step: frames arrive where `engine` has its GPU read them, if the transport lets us
  /// choose.
  void receive_for(DeviceEngine& engine);
  /// A frame that has arrived, of whatever kind, checked as a whole.
  std::optional<Arrival> try_receive();
  /// A buffer for this PE, which passes no transport.
  std::optional<Arrival> try_take_own();
  /// It is applied.
  void finish(const Arrival& arrival);
  /// A frame that carries no messages, or will not be applied.
  void release(const Frame& frame) { transport_.release(frame); }

  /// A frame of a block, written by `writer` where the transport keeps it; `buffer` stands for it, and its
  /// pool bounds how many there are. False: not now, and nothing has a number.
  bool try_write_block(std::uint32_t pe, std::size_t bytes, FrameWriter& writer, Buffer* buffer);
  /// The same, of a frame that stands in the buffer. Both have the number last_sequence_to(pe) + 1.
  void queue_block(std::uint32_t pe, Buffer* buffer);

  /// A control frame, before all that is queued: what it says may be what that waits for.
  void send_first(std::uint32_t pe, Buffer* buffer);
  /// Gives back what is queued. For a job that has failed: it would keep others from hearing of that.
  void drop_queued();
  /// Gives back up to `most` frames that have arrived, unread. True if there was one.
  bool discard(std::uint32_t most);
  /// Frees what has missed its end. The last call, after the last submit() and before the pools go.
  void drop_all();

  std::uint64_t last_sequence_to(std::uint32_t pe) const { return last_sequence_[pe]; }
  /// All frames of `pe` up to this number are applied here.
  std::uint64_t applied_from(std::uint32_t pe) const { return applied_from_[pe].prefix(); }
  bool nothing_to_ship(std::uint32_t pe) const { return to_ship_[pe].empty(); }
  bool nothing_under_way() const { return in_flight_ == 0 && queued_ == 0; }
  /// And nothing is submitted, and no buffer waits to be applied here.
  bool is_idle() const { return nothing_under_way() && own_.empty() && submitted_.was_empty(); }
  /// Destinations beyond the job's PEs are this PE.
  bool is_projecting() const { return projecting_; }
  /// Buffers given back since forget_given_back().
  std::uint32_t given_back() const { return given_back_; }
  void forget_given_back() { given_back_ = 0; }
  BufferTrace& trace() { return trace_; }
  /// Of these sends, which the closed transport has given up on, the bytes stay for ever.
  static void keep_bytes_of(const std::vector<void*>& tokens);

  // Counters: any thread.
  const PeerCounters& peer(std::uint32_t pe) const { return peers_[pe]; }
  std::uint64_t bytes_shipped() const { return bytes_shipped_.load(std::memory_order_relaxed); }
  std::uint64_t buffers_shipped() const { return buffers_shipped_.load(std::memory_order_relaxed); }
  std::uint64_t messages_local() const { return messages_local_.load(std::memory_order_relaxed); }
  std::uint64_t messages_remote() const { return messages_remote_.load(std::memory_order_relaxed); }
  /// Messages that have left this PE's hands: applied here, or taken there.
  std::uint64_t departed() const { return departed_.load(std::memory_order_acquire); }
  const StageCounters& stages() const { return trace_.counters(); }

 private:
  void route(Buffer* buffer);
  void count_block(std::uint32_t pe, std::size_t bytes);
  void give_back(Buffer* buffer);

  Transport& transport_;
  const HandlerTable& handlers_;
  const bool projecting_;
  SubmitQueue submitted_;
  GrownMemory grown_;

  // Owner's.
  std::vector<std::deque<Buffer*>> to_ship_;
  std::uint32_t queued_ = 0;     // in to_ship_
  std::uint32_t in_flight_ = 0;  // sends that the transport has not finished
  std::deque<Buffer*> own_;      // buffers for this PE
  std::vector<void*> tokens_;
  std::vector<std::uint64_t> last_sequence_;  // of buffers to each PE
  std::vector<Sequence> applied_from_;
  std::uint32_t given_back_ = 0;
  BufferTrace trace_;

  std::deque<PeerCounters> peers_;
  std::atomic<std::uint64_t> bytes_shipped_{0};
  std::atomic<std::uint64_t> buffers_shipped_{0};
  std::atomic<std::uint64_t> messages_local_{0};
  std::atomic<std::uint64_t> messages_remote_{0};
  std::atomic<std::uint64_t> departed_{0};
};

}  // namespace esker
