// The network engine of one PE: shipping, dispatch, control messages and completion, put together.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <esker/aggregator/aggregator.hpp>
#include <esker/aggregator/node_buffers.hpp>
#include <esker/net/blocks.hpp>
#include <esker/net/completion.hpp>
#include <esker/net/control.hpp>
#include <esker/net/device_engine.hpp>
#include <esker/net/dispatch.hpp>
#include <esker/net/failure.hpp>
#include <esker/net/host_handlers.hpp>
#include <esker/net/lane_stage.hpp>
#include <esker/net/mail.hpp>
#include <esker/net/owner_bell.hpp>
#include <esker/net/shipping.hpp>
#include <esker/net/transport.hpp>
#include <esker/net/transport_stage.hpp>
#include <esker/queue/waiting.hpp>

namespace esker {

struct NetworkSettings {
  std::uint32_t destinations;     // n_pes; more in the one-node projection, where all of them are this PE
  std::uint32_t submit_capacity;  // buffers that can be closed and not yet taken
  std::uint32_t buffer_bytes;
  std::uint32_t apply_helpers;
  std::chrono::nanoseconds aggregation_timeout;
  std::uint64_t grown_limit_bytes;  // handlers' messages that the network has not taken: more is an error
  Tracer* tracer = nullptr;
};

/// Hears what PEs tell each other of how the job fares. Called by the network's owner.
class Supervisor {
 public:
  virtual void heard_hang_report(std::uint32_t pe, std::uint64_t sent_by_it) = 0;
  virtual void heard_question(std::uint32_t pe) = 0;
  virtual void heard_answer(std::uint32_t pe, std::uint64_t value, std::string_view text) = 0;

 protected:
  ~Supervisor() = default;
};

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

  // Before the owner's first step, in this order.

  /// What lanes send through the package queue; see LaneStage.
  void add_lanes(Aggregators& aggregators, const std::atomic<std::uint64_t>& published,
                 std::atomic<bool>& call_handlers, std::atomic<std::uint32_t>& waiting);
  /// What the program itself sends. Before add_lanes().
  void add_program(CompletionStage& sender) { add_first(sender); }
  /// Lanes run on this GPU. `applies`: the heap is there too.
  void add_device(DeviceEngine& engine, bool applies);
  /// Lanes run on the host, and blocks reach heaps without the network.
  void set_block_memory(BlockMemory& memory) { blocks_.set_memory(memory); }
  void set_supervisor(Supervisor& supervisor);

  // Any thread.
  void submit(Buffer* buffer) override;
  void post(NetworkRequest* request);
  /// Handlers outrun the network: lanes should hold back.
  bool was_congested() const override { return shipping_.grown().was_congested(); }
  /// See Blocks. Wakes the owner.
  void start_block(const BlockTransfer& transfer) {
    if (blocks_.start(transfer)) wake_owner();
  }
  /// Submits a message of the caller's own that calls a handler.
  void submit_call(Buffer* buffer) {
    blocks_.count_call();
    submit(buffer);
  }
  /// Kept for the user's next call, on every PE.
  void fail(const Error& error) override;
  /// Lanes wait for what handlers have sent: it leaves, full or not.
  void flush_handlers();
  OwnerBell& bell() { return bell_; }
  /// For as long as it lives this thread makes the owner's steps itself, and need not wake it.
  class Driving {
   public:
    explicit Driving(bool does) : before_{std::exchange(is_driving_, does)} {}
    ~Driving() { is_driving_ = before_; }
    Driving(const Driving&) = delete;
    Driving& operator=(const Driving&) = delete;

   private:
    const bool before_;
  };
  /// For as long as it lives the user's thread waits for a word of the heap: it is woken when messages have
  /// been applied.
  class Watching {
   public:
    explicit Watching(Network& network) : network_{network} {
      network_.is_watched_.store(true, std::memory_order_relaxed);
    }
    ~Watching() { network_.is_watched_.store(false, std::memory_order_relaxed); }
    Watching(const Watching&) = delete;
    Watching& operator=(const Watching&) = delete;

   private:
    Network& network_;
  };
  bool has_news() const;
  /// Letters of the users' threads.
  Mail& mail() { return mail_; }

  // Owner.
  /// First on the thread that owns it from now on, where that is the runtime's own.
  void enter_thread() const;
  bool progress();
  void broadcast_hang_report();
  void ask_for_status(std::uint32_t pe) { control_.send(wire::Kind::kStatusRequest, pe, 0); }
  void answer_status(std::uint32_t pe, std::uint64_t value, std::string_view text) {
    control_.send(wire::Kind::kStatusReply, pe, value, text);
  }
  /// Its steps may be made by the thread that waits for them: no GPU, and no trace, which is by threads.
  bool may_be_lent() const { return device_stage_ == nullptr && tracer_ == nullptr; }
  bool nothing_under_way() const { return shipping_.nothing_under_way(); }
  /// For the owner, when nothing moves: how often it yields before it naps, and how long it naps.
  std::uint32_t yields() const { return yields_; }
  std::chrono::microseconds longest_nap() const;

  // Counters and racy observations: any thread.
  const Shipping& shipping() const { return shipping_; }
  std::uint64_t applied() const;
  std::uint64_t block_copies() const { return blocks_.copies(); }
  std::uint64_t sent_by_handlers() const { return handlers_.sent_by_handlers(); }
  /// The same, of handlers on a GPU, as far as it passed the host.
  std::uint64_t sent_by_progress() const { return handlers_.sent_on(); }
  /// What the owner is busy with in the user's call, for reports.
  std::string was_waiting_for() const { return completion_.was_waiting_for(); }
  /// It waits for work of this PE's own, such as kernels on a GPU, which do not themselves wait for space.
  bool was_working() const;
  /// Name of a handler that runs just now; empty: none.
  std::string was_in_handler() const { return handlers_.was_in_handler(); }

 private:
  Moved receive();
  bool apply_own();
  bool finish_applied();
  void tell_failure();
  void wake_fillers(bool moved);
  void add_first(CompletionStage& stage);

  /// Something is new for the owner.
  void wake_owner() {
    if (!is_driving_) bell_.ring();
  }

  static inline thread_local bool is_driving_ = false;
  Failure& failure_;
  Doorbell& user_bell_;
  Tracer* const tracer_;
  const std::string name_;  // this PE's, for messages
  Doorbell own_bell_;       // of a transport without one
  OwnerBell bell_;
  Shipping shipping_;
  Control control_;
  Mail mail_;
  HostHandlers handlers_;
  Dispatch dispatch_;
  Blocks blocks_;
  TransportStage transport_stage_;
  std::optional<LaneStage> lanes_;
  std::unique_ptr<CompletionStage> device_stage_;  // owned here, asked through stages_
  std::vector<CompletionStage*> stages_;           // in the order in which messages flow
  Completion completion_;
  BufferTrace& trace_;
  std::atomic<bool> told_failure_{false};
  std::atomic<bool> is_watched_{false};
  bool naps_are_short_ = false;
  std::uint32_t yields_ = Backoff::kYields;
};

}  // namespace esker
