// Stage 3: ships closed buffers, receives, has them applied, and serves the user's collective calls.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <esker/aggregator/aggregator.hpp>
#include <esker/aggregator/node_buffers.hpp>
#include <esker/net/apply_pool.hpp>
#include <esker/net/device_engine.hpp>
#include <esker/net/failure.hpp>
#include <esker/net/stages.hpp>
#include <esker/net/transport.hpp>
#include <esker/queue/mpmc_queue.hpp>
#include <esker/queue/waiting.hpp>

namespace esker {

/// What the user's thread asks of the network's owner. One at a time.
struct NetworkRequest {
  enum class Kind {
    kGather,   // `mine` to everybody's `all`
    kQuiet,    // every message that this PE has sent is applied
    kBarrier,  // every message that any PE has sent is applied, those of handlers too
  };
  Kind kind;
  const char* call;  // the user's, for reports
  // kBarrier and kGather: collective and sequence set. kBarrier: values[2] is 1 if lanes on the CPU have sent
  // active messages, whose handlers may answer. The owner adds what is applied (0) and sent (1), the same (2)
  // of lanes on a GPU, and whether this round is a meeting (3).
  GatherBlock mine;
  std::uint64_t flush_epoch = 0;  // kQuiet and kBarrier
  std::vector<GatherBlock> all;   // result of kGather, one a PE
  std::atomic<bool> done{false};  // [done] release by the owner / acquire by the user's thread
};

struct NetworkSettings {
  std::uint32_t destinations;     // n_pes; more in the one-node projection, where all of them are this PE
  std::uint32_t submit_capacity;  // buffers that can be closed and not yet taken
  std::uint32_t buffer_bytes;
  std::uint32_t apply_helpers;
  std::chrono::nanoseconds aggregation_timeout;
  std::uint64_t grown_limit_bytes;  // handlers' messages that the network has not taken: more is an error
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

/// Who hears what PEs tell each other of how the job fares. Called by the network's owner.
class Supervisor {
 public:
  virtual void heard_hang_report(std::uint32_t pe, std::uint64_t sent_by_it) = 0;
  virtual void heard_question(std::uint32_t pe) = 0;
  virtual void heard_answer(std::uint32_t pe, std::uint64_t value, std::string_view text) = 0;

 protected:
  ~Supervisor() = default;
};

/// The network engine of one PE.
///
/// Contract. One thread, the owner, calls progress() and nothing else is needed for messages to move.
///           submit(), post() and the counters are for any thread. Each submitted buffer is applied
///           exactly once at its destination, then given back to its pool.
/// Progress. progress() never waits. It refuses no buffer: pools bound how many there are.
/// Errors.   Kept in Failure and told to every PE; from then on nothing is applied or shipped.
class Network final : public BufferSink {
 public:
  Network(const NetworkSettings& settings, Transport& transport, const HandlerTable& handlers,
          std::byte* heap_base, const std::atomic<std::uint64_t>& heap_bytes, Failure& failure,
          Doorbell& user_bell);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  void set_aggregators(Aggregators* aggregators) { aggregators_ = aggregators; }
  /// Where the heap is on a GPU, or lanes run there. Before the owner's first step.
  void set_device(DeviceEngine* device, bool applies) {
    device_ = device;
    device_applies_ = applies;
    if (applies) progress_queue_ = device->progress_queue();
  }
  /// Lanes' messages so far; part of termination detection.
  void set_published(const std::atomic<std::uint64_t>* published) { published_ = published; }
  void set_supervisor(Supervisor* supervisor) { supervisor_ = supervisor; }

  // Any thread.
  void submit(Buffer* buffer) override;
  void post(NetworkRequest* request);
  /// Handlers outrun the network: lanes should hold back.
  bool was_congested() const override {
    return grown_live_.load(std::memory_order_relaxed) > settings_.grown_limit_bytes / 4;
  }
  /// Kept for the user's next call, on every PE.
  void fail(const Error& error) override;
  /// Lanes wait for what handlers have sent: it leaves, full or not.
  void flush_handlers();
  Doorbell& bell() { return bell_; }
  bool has_device() const { return device_ != nullptr; }
  bool has_news() const;

  // Owner.
  /// First on the thread that owns it from now on, where that is the runtime's own.
  void enter_thread();
  bool progress();
  /// Tells every PE that this one has failed; progress() ships it.
  void tell_failure();
  void broadcast_hang_report();
  void ask_for_status(std::uint32_t pe) { send_control(wire::Kind::kStatusRequest, pe, 0); }
  void answer_status(std::uint32_t pe, std::uint64_t value, std::string_view text) {
    send_control(wire::Kind::kStatusReply, pe, value, text);
  }
  bool nothing_under_way() const { return in_flight_ == 0 && queued_ == 0; }
  Transport& transport() { return transport_; }
  /// Of these sends, which the closed transport has given up on, the bytes stay for ever.
  static void keep_bytes_of(const std::vector<void*>& tokens);

  // Counters: any thread.
  const PeerCounters& peer(std::uint32_t pe) const { return peers_[pe]; }
  std::uint64_t applied() const;
  std::uint64_t sent_by_handlers() const;
  /// The same, of handlers on a GPU, as far as it passed the host.
  std::uint64_t sent_by_progress() const { return sent_by_progress_.load(std::memory_order_relaxed); }
  std::uint64_t bytes_shipped() const { return bytes_shipped_.load(std::memory_order_relaxed); }
  std::uint64_t buffers_shipped() const { return buffers_shipped_.load(std::memory_order_relaxed); }
  std::uint64_t messages_local() const { return messages_local_.load(std::memory_order_relaxed); }
  std::uint64_t messages_remote() const { return messages_remote_.load(std::memory_order_relaxed); }
  std::uint64_t grown_peak_bytes() const { return grown_peak_.load(std::memory_order_relaxed); }
  const StageCounters& stages() const { return stages_; }
  /// Messages under the look-ahead bound that have left this PE's hands: applied here, or taken there.
  std::uint64_t departed() const { return departed_.load(std::memory_order_acquire); }
  /// For the owner, when nothing moves. A GPU rings no bell, and a call may be waiting for it.
  std::chrono::microseconds longest_nap() const {
    if (device_ == nullptr) return std::chrono::microseconds::max();
    return active_ != nullptr || device_->is_under_way() ? std::chrono::microseconds{20}
                                                         : std::chrono::microseconds::max();
  }
  /// What the owner is busy with in the user's call, for reports.
  std::string was_waiting_for() const;
  /// Racy: it waits for kernels on a GPU to end, which do not themselves wait for room.
  bool was_waiting_for_kernels() const;
  /// Name of a handler that runs just now; empty: none.
  std::string was_in_handler() const;

 private:
  // Frames of one source arrive out of order and with helpers finish so: `prefix` of them are applied.
  struct Sequence {
    std::uint64_t prefix = 0;
    std::set<std::uint64_t> beyond;
    void add(std::uint64_t n);
  };
  struct Job {
    ApplyJob job;
    Buffer* buffer;  // local, or null: `frame` is the transport's
    Frame frame;
    bool handed_out = false;
  };
  struct QuietState {
    std::uint32_t emptied = 0;  // helpers whose outbox has been empty since the call
    bool requested = false;
    std::vector<std::uint64_t> target;
    std::vector<std::uint64_t> direct_target;  // by link
  };
  enum class BarrierStep { kSettle, kFlush, kDrain, kGather };
  /// A call's wait for the device: its kernels, then progress kernels, then another flush.
  struct Settling {
    bool ended = false;    // the kernels
    bool meets = false;    // in a barrier: others' may still run
    bool settled = false;  // the progress kernels
    std::uint64_t progress = 0;
  };

  bool close_outbox(bool flushing);
  bool take_submitted();
  void route(Buffer* buffer);
  bool ship_queued();
  bool collect_sent();
  bool receive();
  bool apply_some();
  void apply(const wire::FrameHeader& header, const std::byte* bytes, Buffer* buffer, const Frame& frame);
  void finish(const wire::FrameHeader& header, Buffer* buffer, const Frame& frame);
  void control(const wire::FrameHeader& header, const Frame& frame);
  void send_control(wire::Kind kind, std::uint32_t pe, std::uint64_t value, std::string_view text = {});
  bool answer_quiet();
  bool step_device();
  /// Takes up to `most` packages of progress kernels. True if there was one.
  bool take_from_progress(std::uint32_t most);
  /// Messages for handlers may be about, as far as this PE knows.
  bool handlers_called() const { return handlers_called_before_ > barriers_; }
  bool have_kernels_ended();
  /// A round of the barrier begins: progress kernels before it do not count.
  void settle_again();
  /// True once the device has settled and `flush_epoch` is one that was asked for since.
  bool settle_device(std::uint64_t& flush_epoch);
  bool serve();
  bool serve_quiet();
  bool serve_barrier();
  void complete();
  void give_back(Buffer* buffer);
  // network_trace.cpp: counts, and where there is a tracer, events.
  void now_waits_for(const char* what);  // the user's call; "": there is none. A literal
  void trace_routed(Buffer& buffer, const wire::FrameHeader& header, bool local);
  void trace_shipped(const Buffer& buffer, TracePhase phase, std::int64_t at_ns);
  void trace_received(const wire::FrameHeader& header, std::int64_t taken_ns);
  void trace_applied(const wire::FrameHeader& header, std::int64_t taken_ns);
  bool locally_idle() const;

  const NetworkSettings settings_;
  Transport& transport_;
  const HandlerTable& handlers_;
  std::byte* const heap_base_;
  const std::atomic<std::uint64_t>& heap_bytes_;
  Failure& failure_;
  Doorbell& user_bell_;
  Aggregators* aggregators_ = nullptr;
  DeviceEngine* device_ = nullptr;
  bool device_applies_ = false;
  PackageQueue progress_queue_;
  const std::atomic<std::uint64_t>* published_ = nullptr;
  Supervisor* supervisor_ = nullptr;
  Doorbell bell_;
  const bool projecting_;

  MpmcQueue<Buffer*> submitted_;
  std::mutex overflow_mutex_;
  std::deque<Buffer*> overflow_;  // guarded by overflow_mutex_: grown buffers beyond the queue
  std::atomic<std::uint32_t> overflowed_{0};
  std::atomic<bool> flush_wanted_{false};  // by lanes that wait
  std::atomic<std::uint32_t> unseen_{0};   // submitted since the owner last looked; a hint

  // Owner's from here.
  std::vector<std::deque<Buffer*>> to_ship_;
  std::uint32_t queued_ = 0;               // in to_ship_
  std::uint32_t in_flight_ = 0;            // sends that the transport has not finished
  std::deque<Buffer*> to_apply_;           // local buffers
  std::deque<std::unique_ptr<Job>> jobs_;  // handed to helpers, oldest first
  std::vector<void*> tokens_;
  std::vector<std::uint64_t> last_sequence_;  // of buffers to each PE
  std::vector<Sequence> applied_from_;
  std::vector<std::uint64_t> quiet_wanted_;   // by each PE: 0, or up to where it wants to know
  std::vector<std::uint64_t> quiet_known_;    // of mine, applied at each PE
  std::vector<std::uint64_t> direct_wanted_;  // the same for what does not pass the host, in messages
  std::vector<std::uint64_t> direct_known_;
  bool drain_wanted_ = false;
  std::uint64_t barriers_ = 0;                // that have ended
  std::uint64_t handlers_called_before_ = 0;  // the number of a barrier: active messages were sent before it
  std::chrono::steady_clock::time_point next_early_progress_;
  Settling settling_;
  std::uint32_t given_back_ = 0;  // since the aggregators were last woken
  std::atomic<bool> told_failure_{false};
  ApplyWorker inline_worker_;  // where there are no helpers
  ApplyPool helpers_;
  NetworkRequest* active_ = nullptr;
  QuietState quiet_;
  BarrierStep barrier_step_ = BarrierStep::kSettle;
  std::uint64_t barrier_sums_[2] = {0, 0};
  bool barrier_seen_equal_ = false;
  std::uint32_t barrier_rounds_ = 0;
  std::chrono::steady_clock::time_point next_round_;
  std::vector<GatherBlock> blocks_;

  std::atomic<NetworkRequest*> posted_{nullptr};  // [request] release by post() / acquire by the owner
  std::deque<PeerCounters> peers_;
  StageCounters stages_;
  std::atomic<std::uint64_t> bytes_shipped_{0};
  std::atomic<std::uint64_t> buffers_shipped_{0};
  std::atomic<std::uint64_t> messages_local_{0};
  std::atomic<std::uint64_t> messages_remote_{0};
  std::atomic<std::uint64_t> departed_{0};
  std::atomic<std::uint64_t> sent_by_progress_{0};
  std::atomic<std::uint64_t> grown_live_{0};
  std::atomic<std::uint64_t> grown_peak_{0};
  std::atomic<const char*> doing_{""};
  std::atomic<std::int64_t> starved_ns_{0};  // when lanes on a GPU last said that they wait for room
  std::int64_t doing_since_ns_ = 0;          // while tracing; the owner's
};

}  // namespace esker
