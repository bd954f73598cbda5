// Blocks of bytes between PEs, beside messages: puts, and gets with their replies.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <esker/aggregator/buffer.hpp>
#include <esker/net/arrival.hpp>
#include <esker/net/block_layout.hpp>
#include <esker/net/block_memory.hpp>
#include <esker/net/completion_stage.hpp>
#include <esker/net/failure.hpp>
#include <esker/net/handler.hpp>
#include <esker/net/shipping.hpp>

namespace esker {

/// A block as its caller describes it.
struct BlockTransfer {
  enum class Kind : std::uint8_t { kPut, kGet, kReply };
  Kind kind;
  std::uint32_t pe;  // the other one
  std::byte* near;   // where the first piece begins here: kGet's result, or what is sent
  BlockLayout near_layout;
  std::uint64_t far;  // in the other one's heap
  BlockLayout far_layout;
  std::uint64_t bytes;       // > 0
  std::uint64_t number = 0;  // kGet and kReply: of the request, at the PE that asks
  std::uint64_t sent = 0;    // bytes that have left
};

/// Contract. start() and the counters are for any thread, drop() too, the rest for the network's owner. A
/// block
///           travels in frames, at most kUnderWay to a PE at a time, each of which counts as one message: of
///           a put the caller's, of a get's reply the owner's of the heap. What start() is given is inside
///           the heap of the other PE, as this PE knows it. `near` is untouched by this object once the stage
///           has been flushed (a put), once its reply has been answered() (a get), or once drop() has
///           returned.
/// Protocol. A get is a request frame; the answer is frames that name its number, which this PE lays out. At
///           most kGets requests are under way to a PE, so what a PE holds of others' is bounded.
/// Ordering. [block] what start() is given  happens before  the owner takes it.
/// Progress. No call waits, but drop() for a copy of one frame. Messages that are queued for a PE go first.
/// Errors.   Error{kNetwork}: a frame for what is outside the heap, or of no request.
class Blocks final : public CompletionStage {
 public:
  static constexpr std::uint32_t kUnderWay = 4;  // frames to a PE: the slots of a host's ring
  static constexpr std::uint32_t kGets = 8;

  Blocks(Shipping& shipping, Transport& transport, std::uint32_t frame_bytes, std::byte* heap_base,
         const std::atomic<std::uint64_t>& heap_bytes);
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  /// Before the owner's first step: the heap is in the memory of a GPU, or peers' heaps are within reach.
  void set_memory(BlockMemory& memory) { memory_ = &memory; }

  // Any thread.
  /// True: the owner should be woken.
  bool start(const BlockTransfer& transfer);
  bool was_started() const { return posted_count_.load(std::memory_order_acquire) != 0; }
  /// A message is about to be submitted that no other stage counts as sent; it calls a handler.
  void count_call() {
    asks_.store(true, std::memory_order_relaxed);
    sent_.fetch_add(1, std::memory_order_release);
  }
  /// Steps in which a part has been copied to or from a heap that this PE reaches.
  std::uint64_t copies() const { return copies_.load(std::memory_order_relaxed); }
  /// For a job that has failed: nothing more is read from or written to the caller's memory.
  void drop();

  // Owner.
  /// Hands at most kBlockFramesAStep frames on. `beside_messages`: some have moved in this step; for a while
  /// then frames are short, so that a message finds little before it. True if something moved.
  bool ship(bool beside_messages);
  void take_request(const Arrival& arrival);
  void take_reply(const Arrival& arrival);
  /// A kBlock frame is in the heap.
  void has_applied() { applied_.fetch_add(1, std::memory_order_release); }
  bool is_idle() const { return are_flushed() && replies_.load(std::memory_order_relaxed) == 0; }

  void begin(const NetworkRequest& call) override {
    if (call.kind == NetworkRequest::Kind::kBarrier)
      may_send_ |= asks_.exchange(false, std::memory_order_relaxed);
  }
  bool flushed() override { return are_flushed(); }
  bool drained() override { return is_idle(); }
  const char* waits_for() const override { return "blocks to leave"; }
  std::uint64_t applied() const override { return applied_.load(std::memory_order_acquire); }
  std::uint64_t sent() const override { return sent_.load(std::memory_order_acquire); }
  std::uint64_t asked() const override { return asked_.load(std::memory_order_acquire); }
  std::uint64_t answered() const override { return answered_.load(std::memory_order_acquire); }
  bool may_send() const override { return may_send_; }
  void end(bool all_applied) override { may_send_ = may_send_ && !all_applied; }

 private:
  class Writer;
  static constexpr std::uint32_t kStepsBesideMessages = 256;
  bool is_beside_messages() const { return steps_without_ < kStepsBesideMessages; }
  bool are_flushed() const { return !was_started() && own_.load(std::memory_order_relaxed) == 0; }
  struct Get {
    std::uint32_t pe;
    std::byte* result;
    BlockLayout layout;
    std::uint64_t bytes, left;
  };
  struct Peer {
    Peer(std::uint32_t head_bytes, std::uint32_t frame_bytes)
        : heads{head_bytes, kUnderWay}, frames{frame_bytes, kUnderWay} {}
    std::deque<BlockTransfer> own, replies;
    bool reply_next = false;  // they take turns
    std::uint32_t gets = 0;   // under way
    BufferPool heads;         // stand for frames that are written in place
    BufferPool frames;
  };

  /// Of the bytes that are left of a block, those in the next frame: the last two frames share what is left.
  std::uint64_t part_of(std::uint64_t left) const;
  void take_posted();
  bool ship_to(std::uint32_t pe);
  bool ship_front(std::uint32_t pe, std::deque<BlockTransfer>& queue);
  bool copy_front(std::deque<BlockTransfer>& queue, std::byte* heap);
  bool try_ship(std::uint32_t pe, const BlockTransfer& transfer, std::uint64_t bytes);
  void begin_get(BlockTransfer& transfer);
  void copy(void* to, const void* from, std::uint64_t bytes);
  void wait_for_copies() {
    if (memory_ != nullptr) memory_->wait_for_copies();
  }

  Shipping& shipping_;
  Transport& transport_;
  const std::uint64_t most_;  // bytes of a block in a frame: whole lines, as part_of() rounds up to
  std::byte* const heap_base_;
  const std::atomic<std::uint64_t>& heap_bytes_;
  BlockMemory* memory_ = nullptr;

  std::mutex posted_mutex_;
  std::vector<BlockTransfer> posted_;           // guarded by posted_mutex_
  std::atomic<std::uint32_t> posted_count_{0};  // [block]

  std::mutex mutex_;  // held while callers' memory is touched
  bool is_dropped_ = false;
  std::vector<std::unique_ptr<Peer>> peers_;     // this and what follows: the owner's, and drop()'s
  std::unordered_map<std::uint64_t, Get> gets_;  // by number
  std::uint64_t last_get_ = 0;
  std::uint32_t steps_without_ = ~0u;               // messages
  std::uint32_t next_ = 0;                          // PE that is served first
  std::atomic<std::uint64_t> own_{0}, replies_{0};  // transfers in peers' queues
  bool may_send_ = false;                           // before the barrier that is served
  std::atomic<std::uint64_t> copies_{0};

  std::atomic<bool> asks_{false};  // gets or calls, since the last barrier
  std::atomic<std::uint64_t> sent_{0}, applied_{0}, asked_{0}, answered_{0};
};

/// Throws if what a peer's frame reads or writes is outside a heap of so many bytes.
void require_inside(const wire::FrameHeader& header, const wire::BlockHeader& block,
                    std::uint64_t heap_bytes);

}  // namespace esker
