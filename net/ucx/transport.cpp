// A frame is an active message, and so is the answer that it is taken.
#include <esker/net/ucx/transport.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>

#include <esker/device/error.hpp>
#include <esker/net/connecting.hpp>
#include <esker/net/ucx/worker.hpp>

namespace esker::ucx {
namespace {

/// Frames from one PE to another, which the receiver may come to hold.
constexpr std::uint32_t kMostUnderWay = 8;
constexpr std::chrono::seconds kPatienceAtTheEnd{10};

/// Active messages by their numbers.
enum Message : unsigned { kFrame, kTaken };
/// Of both: the PE that sends the message, and the frame's number at the PE that has sent that.
struct Header {
  std::uint32_t from;
  std::uint32_t frame;
};

/// Contract. As Transport's.
/// Protocol. A frame is sent at once, into memory that UCX finds for it at its receiver, where the caller
///           reads it. kTaken answers it when the caller has it: then its sender may send another.
/// Progress. In try_receive() and poll_sent(). Callbacks, which UCX makes in there, only take notes.
class UcxTransport final : public Transport {
 public:
  UcxTransport(std::unique_ptr<Transport> beside, TransportLimits limits)
      : beside_{std::move(beside)},
        limits_{limits},
        most_under_way_{std::min(limits.receives, kMostUnderWay)},
        pe_{beside_->pe()},
        peers_(beside_->n_pes()),
        held_(limits.receives) {}
  ~UcxTransport() override {
    // Without an endpoint UCX has been told nothing.
    if (std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.endpoint != nullptr; }))
      leave();
  }
  UcxTransport(const UcxTransport&) = delete;
  UcxTransport& operator=(const UcxTransport&) = delete;

  /// Local.
  void open() {
    context_ = make_context(n_pes(), pes_on_host());
    worker_ = make_worker(context_);
    handle(worker_, kFrame, arrived, this);
    handle(worker_, kTaken, taken, this);
    peers_[pe_].address = address_of(worker_);
    for (std::uint32_t slot = 0; slot < held_.size(); ++slot) free_slots_.push_back(slot);
  }
  /// Collective, after open() on all PEs.
  void exchange_addresses() {
    auto addresses = gather_bytes(*beside_, std::vector(peers_[pe_].address));
    for (std::uint32_t pe = 0; pe < n_pes(); ++pe) peers_[pe].address = std::move(addresses[pe]);
  }
  Transport& beside() { return *beside_; }
  std::unique_ptr<Transport> take_beside() { return std::move(beside_); }

  bool is_for_any_thread() const override { return beside_->is_for_any_thread(); }
  std::uint32_t pe() const override { return pe_; }
  std::uint32_t n_pes() const override { return static_cast<std::uint32_t>(peers_.size()); }
  std::uint32_t world_rank(std::uint32_t of_pe) const override { return beside_->world_rank(of_pe); }
  std::uint32_t pes_on_host() const override { return beside_->pes_on_host(); }
  std::uint64_t frame_memory_bytes() const override {
    // Not yet taken, and taken.
    return (std::uint64_t{n_pes()} * most_under_way_ + limits_.receives) * limits_.frame_bytes;
  }
  std::string name() const override {
    return fmt::format("ucx (UCX {}) beside {}", ucp_get_version_string(), beside_->name());
  }

  bool try_send(std::uint32_t to, std::span<const std::byte> bytes, void* token) override {
    if (bytes.size() > limits_.frame_bytes) refuse(bytes.size());
    Peer& peer = peers_[to];
    if (peer.under_way == most_under_way_ || !reaches(to)) return false;
    ++peer.under_way;
    Sent& sent = new_sent(to);
    sent.token = token;
    sent.is_frame = true;
    sent.ends_left = 2;  // UCX needs the bytes no more, and they are taken
    send(sent, kFrame, sent.number, bytes);
    return true;
  }

  void poll_sent(std::vector<void*>& tokens) override {
    if (finished_.empty()) ucp_worker_progress(worker_.get());
    for (Sent* const sent : finished_) {
      tokens.push_back(sent->token);
      --peers_[sent->to].under_way;
      free_sent_.push_back(sent);
    }
    finished_.clear();
  }

  std::optional<Frame> try_receive() override {
    if (arrived_.empty()) ucp_worker_progress(worker_.get());
    if (arrived_.empty() || free_slots_.empty()) return std::nullopt;
    const Arrived frame = arrived_.front();
    arrived_.pop_front();
    if (frame.bytes.size() > limits_.frame_bytes) refuse(frame.bytes.size());
    const std::uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    held_[slot] = frame.data;
    if (reaches(frame.header.from)) {
      Sent& answer = new_sent(frame.header.from);
      answer.is_frame = false;
      answer.ends_left = 1;
      send(answer, kTaken, frame.header.frame, {});
    }
    return Frame{frame.bytes, slot};
  }

  void release(const Frame& frame) override {
    ucp_am_data_release(worker_.get(), held_[frame.slot]);
    free_slots_.push_back(frame.slot);
  }

  void begin_gather(const GatherBlock& mine) override { beside_->begin_gather(mine); }
  bool test_gather(std::span<GatherBlock> all) override { return beside_->test_gather(all); }
  void begin_exchange(std::shared_ptr<Exchange> exchange) override {
    beside_->begin_exchange(std::move(exchange));
  }
  bool test_exchange() override { return beside_->test_exchange(); }

  std::string find_dead_peer() override {
    if (std::string dead = beside_->find_dead_peer(); !dead.empty()) return dead;
    for (const Peer& peer : peers_) {
      if (!peer.lost.empty()) return peer.lost;
    }
    return {};
  }
  PeerProcess find_process(std::uint32_t other) const override { return beside_->find_process(other); }

  std::vector<void*> close(bool orderly) override {
    if (orderly) {
      orderly = meets();  // an endpoint that ends is lost for its peer
      const bool is_done = orderly && closes_endpoints();
      orderly = orderly && meets();  // so that nobody's worker ends before all have done this
      if (is_done && orderly) {
        worker_.reset();
        context_.reset();
        return beside_->close(true);
      }
    }
    std::vector<void*> tokens = leave();
    const std::vector<void*> others = beside_->close(orderly);
    tokens.insert(tokens.end(), others.begin(), others.end());
    return tokens;
  }

  [[noreturn]] void abort(int status) override {
    beside_->abort(status);
    std::_Exit(status);  // g++ does not know that a virtual function never returns
  }

 private:
  struct Peer {
    std::vector<std::byte> address;
    ucp_ep_h endpoint = nullptr;  // once there is something for it, or from it
    std::uint32_t under_way = 0;  // frames sent
    std::string lost;             // why it cannot be reached any more
  };
  /// A message of this PE. UCX reads the header until the message has gone.
  struct Sent {
    UcxTransport* transport = nullptr;
    std::uint32_t number = 0;
    Header header{};
    std::uint32_t to = 0;
    std::uint32_t ends_left = 0;  // 0: free, or a frame in finished_
    bool is_frame = false;
    void* token = nullptr;  // a frame's
  };
  struct Arrived {
    Header header;
    void* data;  // UCX's
    std::span<const std::byte> bytes;
  };
  /// What UCX may touch for as long as the process lives; never freed.
  struct Stays {
    Context context;
    Worker worker;
    std::deque<Sent> sent;
  };
  static inline std::vector<Stays>& stays_ = *new std::vector<Stays>;
  static inline std::mutex& stays_mutex_ = *new std::mutex;  // Runtimes of one process end side by side

  [[noreturn]] void refuse(std::size_t bytes) const {
    throw Error(Error::Kind::kNetwork,
                fmt::format("UCX: a frame of {} bytes is longer than {}", bytes, limits_.frame_bytes));
  }

  // --- Callbacks. An exception has no way through UCX.

  static ucs_status_t arrived(void* transport, const void* header, std::size_t header_bytes, void* data,
                              std::size_t size, const ucp_am_recv_param_t*) noexcept {
    Arrived it{{}, data, {static_cast<const std::byte*>(data), size}};
    if (header_bytes != sizeof it.header) return UCS_OK;  // no frame of this transport's
    std::memcpy(&it.header, header, sizeof it.header);
    static_cast<UcxTransport*>(transport)->arrived_.push_back(it);
    return UCS_INPROGRESS;  // it stays until release()
  }

  static ucs_status_t taken(void* transport, const void* header, std::size_t header_bytes, void*, std::size_t,
                            const ucp_am_recv_param_t*) noexcept {
    auto& self = *static_cast<UcxTransport*>(transport);
    Header it{};
    if (header_bytes != sizeof it) return UCS_OK;
    std::memcpy(&it, header, sizeof it);
    if (it.frame < self.sent_.size()) self.end(self.sent_[it.frame]);
    return UCS_OK;
  }

  static void was_sent(void* request, ucs_status_t status, void* user_data) noexcept {
    auto& sent = *static_cast<Sent*>(user_data);
    ucp_request_free(request);
    sent.transport->has_gone(sent, status);
  }

  static void was_lost(void* peer, ucp_ep_h, ucs_status_t status) noexcept {
    auto& [self, pe] = *static_cast<std::pair<UcxTransport*, std::uint32_t>*>(peer);
    self->lose(pe, status, "the connection");
  }

  void has_gone(Sent& sent, ucs_status_t status) {
    if (status == UCS_OK) return end(sent);
    lose(sent.to, status, "ucp_am_send_nbx");
  }
  void end(Sent& sent) {
    if (--sent.ends_left == 0) (sent.is_frame ? finished_ : free_sent_).push_back(&sent);
  }

  /// Whoever asks for dead peers hears of it. What was on its way to it, or from it, is never done.
  void lose(std::uint32_t pe, ucs_status_t status, std::string_view what) {
    std::string& lost = peers_[pe].lost;
    if (lost.empty())
      lost = fmt::format("{} cannot be reached any more: UCX: {}: {}", name_of(*this, pe), what,
                         ucs_status_string(status));
  }

  // --- The owner's thread.

  /// Has an endpoint for it, as far as is known. If not, find_dead_peer() says why.
  bool reaches(std::uint32_t pe) {
    Peer& peer = peers_[pe];
    if (!peer.lost.empty()) return false;
    if (peer.endpoint != nullptr) return true;
    lost_arguments_.emplace_back(this, pe);
    try {
      peer.endpoint = make_endpoint(worker_, peer.address, was_lost, &lost_arguments_.back());
    } catch (const Error& error) {
      peer.lost = fmt::format("{} cannot be reached: {}", name_of(*this, pe), error.what());
    }
    return peer.endpoint != nullptr;
  }

  Sent& new_sent(std::uint32_t to) {
    if (free_sent_.empty()) {
      free_sent_.push_back(&sent_.emplace_back());
      sent_.back().transport = this;
      sent_.back().number = static_cast<std::uint32_t>(sent_.size() - 1);
    }
    Sent& sent = *free_sent_.back();
    free_sent_.pop_back();
    sent.to = to;
    return sent;
  }

  void send(Sent& sent, Message message, std::uint32_t frame, std::span<const std::byte> bytes) {
    sent.header = {pe_, frame};
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_AM_SEND_FLAG_EAGER;
    param.cb.send = was_sent;
    param.user_data = &sent;
    void* const request = ucp_am_send_nbx(peers_[sent.to].endpoint, message, &sent.header, sizeof sent.header,
                                          bytes.data(), bytes.size(), &param);
    if (!UCS_PTR_IS_PTR(request)) has_gone(sent, UCS_PTR_STATUS(request));
  }

  /// Collective. False: a PE has died.
  bool meets() {
    try {
      gather_now(*beside_, {}, [this] { ucp_worker_progress(worker_.get()); });
    } catch (const Error&) {
      return false;
    }
    return true;
  }
  /// False: not in time.
  bool closes_endpoints() {
    const auto until = std::chrono::steady_clock::now() + kPatienceAtTheEnd;
    const auto progress = [&] {
      ucp_worker_progress(worker_.get());
      if (std::chrono::steady_clock::now() > until) fail(UCS_ERR_TIMED_OUT, "the end");
    };
    try {
      for (Peer& peer : peers_) {
        if (peer.endpoint != nullptr) close_endpoint(std::exchange(peer.endpoint, nullptr), progress);
      }
    } catch (const Error&) {
      return false;
    }
    return true;
  }

  /// The program may go on, and UCX may read and write what it was told to for as long as its worker lives.
  /// So that, and what it may touch, stays.
  std::vector<void*> leave() {
    std::vector<void*> tokens;
    for (const Sent& sent : sent_) {
      if (sent.is_frame && sent.ends_left > 0) tokens.push_back(sent.token);
    }
    for (const Sent* sent : finished_) tokens.push_back(sent->token);
    for (Peer& peer : peers_) peer.endpoint = nullptr;
    const std::lock_guard lock(stays_mutex_);
    stays_.push_back({std::move(context_), std::move(worker_), std::move(sent_)});
    return tokens;
  }

  std::unique_ptr<Transport> beside_;
  const TransportLimits limits_;
  const std::uint32_t most_under_way_;  // frames, to each PE
  const std::uint32_t pe_;
  std::vector<Peer> peers_;

  std::deque<Sent> sent_;        // by number; each is under way, in finished_ or in free_sent_
  std::vector<Sent*> finished_;  // frames, since the last poll_sent()
  std::vector<Sent*> free_sent_;

  std::deque<Arrived> arrived_;
  std::vector<void*> held_;  // by slot: UCX's data of frames that the caller has
  std::vector<std::uint32_t> free_slots_;
  std::deque<std::pair<UcxTransport*, std::uint32_t>> lost_arguments_;

  Context context_;
  Worker worker_;  // ends first: its callbacks write the others
};

/// Local. Why this PE does without UCX, "" if it can use it.
std::string open(UcxTransport& transport, Wish wish) {
  if (wish == Wish::kOff) return "it has --transport mpi";
  try {
    transport.open();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

}  // namespace

std::unique_ptr<Transport> connect(std::unique_ptr<Transport> beside, TransportLimits limits, Wish wish) {
  auto transport = std::make_unique<UcxTransport>(std::move(beside), limits);
  bool is_error = false;
  std::string why;
  try {
    is_error = must_some(transport->beside(), wish);
    why = first_reason(transport->beside(), open(*transport, wish));
    if (why.empty()) {
      transport->exchange_addresses();
      return transport;
    }
  } catch (...) {
    close_and_rethrow(*transport);
  }
  std::unique_ptr<Transport> alone = transport->take_beside();
  if (!is_error) return alone;
  alone->close(true);
  throw Error(
      Error::Kind::kNetwork,
      fmt::format("transport is ucx, and PEs cannot use UCX: {}; with --transport auto they go by MPI", why));
}

}  // namespace esker::ucx
