// Active messages: small frames travel in them, others are announced by them and fetched.
#include <esker/net/ucx/transport.hpp>

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <new>
#include <utility>

#include <esker/device/error.hpp>
#include <esker/net/connecting.hpp>
#include <esker/net/ucx/worker.hpp>

namespace esker::ucx {
namespace {

constexpr std::chrono::seconds kPatienceAtTheEnd{10};

/// Active messages by their numbers.
enum Message : unsigned { kFrame, kTaken };
/// Of both: the sender's PE, and its number for the frame.
struct Header {
  std::uint32_t from;
  std::uint32_t frame;
};

/// Contract. As Transport's.
/// Protocol. A large frame is announced, and fetched when its receiver has a free slot; UCX tells its sender.
/// A small
///           one travels in its message, and kTaken answers it when it has a slot. So a PE holds the bytes of
///           `receives` frames, and of any other an announcement or a small copy, `receives` a peer at most.
/// Progress. In try_receive() and poll_sent(). Callbacks, which UCX makes in there, only take notes.
class UcxTransport final : public Transport {
 public:
  UcxTransport(std::unique_ptr<Transport> beside, TransportLimits limits, std::size_t small_bytes)
      : beside_{std::move(beside)},
        limits_{limits},
        small_bytes_{small_bytes},
        pe_{beside_->pe()},
        peers_(beside_->n_pes()),
        slots_(limits.receives) {}

  /// Local.
  void open() {
    context_ = make_context(n_pes(), pes_on_host());
    worker_ = make_worker(context_);
    handle(worker_, kFrame, arrived, this);
    handle(worker_, kTaken, taken, this);
    peers_[pe_].address = address_of(worker_);
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
      slots_[i].transport = this;
      slots_[i].bytes.reset(new (std::align_val_t{kAlignment}) std::byte[limits_.frame_bytes]);
      free_slots_.push_back(i);
    }
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
  std::uint32_t pes_on_host() const override { return beside_->pes_on_host(); }
  std::uint64_t frame_memory_bytes() const override {
    return beside_->frame_memory_bytes() +
           limits_.receives * (limits_.frame_bytes + std::uint64_t{n_pes()} * small_bytes_);
  }
  std::string name() const override {
    return fmt::format("ucx (UCX {}) beside {}", ucp_get_version_string(), beside_->name());
  }

  bool try_send(std::uint32_t to, std::span<const std::byte> bytes, void* token) override {
    if (bytes.size() > limits_.frame_bytes) refuse(bytes.size());
    Peer& peer = peers_[to];
    if (peer.under_way == limits_.receives || !peer.lost.empty()) return false;
    const bool is_small = bytes.size() <= small_bytes_;
    Sent& sent = new_sent();
    sent.token = token;
    sent.to = to;
    sent.ends_left = is_small ? 2 : 1;  // UCX needs the bytes no more, and they are taken
    ++peer.under_way;
    send(sent, kFrame, sent.number, bytes, is_small ? UCP_AM_SEND_FLAG_EAGER : UCP_AM_SEND_FLAG_RNDV);
    return true;
  }

  void poll_sent(std::vector<void*>& tokens) override {
    if (finished_.empty()) step();
    for (Sent* const sent : finished_) {
      tokens.push_back(sent->token);
      --peers_[sent->to].under_way;
      free_sent_.push_back(sent);
    }
    finished_.clear();
  }

  std::optional<Frame> try_receive() override {
    if (ready_.empty()) {
      step();
      if (ready_.empty()) return std::nullopt;
    }
    const std::uint32_t slot = ready_.front();
    ready_.pop_front();
    return Frame{{slots_[slot].bytes.get(), slots_[slot].size}, slot};
  }

  void release(const Frame& frame) override { free_slots_.push_back(frame.slot); }

  void begin_gather(const GatherBlock& mine) override { beside_->begin_gather(mine); }
  bool test_gather(std::span<GatherBlock> all) override { return beside_->test_gather(all); }

  std::string find_dead_peer() override {
    if (std::string dead = beside_->find_dead_peer(); !dead.empty()) return dead;
    for (const Peer& peer : peers_) {
      if (!peer.lost.empty()) return peer.lost;
    }
    return {};
  }
  PeerProcess find_process(std::uint32_t other) const override { return beside_->find_process(other); }

  std::vector<void*> close(bool orderly) override {
    if (orderly && closes_endpoints()) {
      worker_.reset();
      context_.reset();
      return beside_->close(true);
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
  static constexpr std::size_t kAlignment = 128;
  struct Free {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{kAlignment}); }
  };
  struct Peer {
    std::vector<std::byte> address;
    ucp_ep_h endpoint = nullptr;  // once there is something for it, or from it
    std::uint32_t under_way = 0;  // frames sent
    std::string lost;             // why it cannot be reached any more
  };
  /// A message of this PE. UCX reads the header until the message has gone.
  struct Sent {
    UcxTransport* transport;
    std::uint32_t number;
    Header header;
    void* token;  // of a frame, else null
    std::uint32_t to;
    std::uint32_t ends_left;  // 0: free, or a frame in finished_
  };
  struct Arrived {
    Header header;
    std::size_t size;
    void* announced;               // UCX's, of a large frame
    std::vector<std::byte> small;  // a copy
  };
  struct Slot {
    UcxTransport* transport = nullptr;
    std::unique_ptr<std::byte[], Free> bytes;
    std::size_t size = 0;
    std::uint32_t from = 0;
  };
  /// What UCX may touch for as long as the process lives; never freed.
  struct Stays {
    Context context;
    Worker worker;
    std::vector<Slot> slots;
    std::deque<Sent> sent;
  };
  static inline std::vector<Stays>& stays_ = *new std::vector<Stays>;

  [[noreturn]] void refuse(std::size_t bytes) const {
    throw Error(Error::Kind::kNetwork,
                fmt::format("UCX: a frame of {} bytes is longer than {}", bytes, limits_.frame_bytes));
  }

  // --- Callbacks. An exception has no way through UCX.

  static ucs_status_t arrived(void* transport, const void* header, std::size_t header_bytes, void* data,
                              std::size_t size, const ucp_am_recv_param_t* param) noexcept {
    auto& self = *static_cast<UcxTransport*>(transport);
    Arrived it{{}, size, nullptr, {}};
    if (header_bytes != sizeof it.header) return UCS_OK;  // no frame of this transport's
    std::memcpy(&it.header, header, sizeof it.header);
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
      it.announced = data;
      self.arrived_.push_back(std::move(it));
      return UCS_INPROGRESS;
    }
    const auto* const bytes = static_cast<const std::byte*>(data);
    if (self.arrived_.empty() && !self.free_slots_.empty() && size <= self.limits_.frame_bytes) {
      self.take(it.header, {bytes, size});
    } else {
      it.small.assign(bytes, bytes + size);
      self.arrived_.push_back(std::move(it));
    }
    return UCS_OK;
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

  static void was_fetched(void* request, ucs_status_t status, std::size_t, void* user_data) noexcept {
    auto& slot = *static_cast<Slot*>(user_data);
    ucp_request_free(request);
    slot.transport->end_fetch(slot, status);
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
    if (--sent.ends_left == 0) (sent.token != nullptr ? finished_ : free_sent_).push_back(&sent);
  }

  void end_fetch(Slot& slot, ucs_status_t status) {
    const auto number = static_cast<std::uint32_t>(&slot - slots_.data());
    if (status == UCS_OK) return ready_.push_back(number);
    free_slots_.push_back(number);
    lose(slot.from, status, "ucp_am_recv_data_nbx");
  }

  /// Whoever asks for dead peers hears of it. What was on its way to it, or from it, is never done.
  void lose(std::uint32_t pe, ucs_status_t status, std::string_view what) {
    std::string& lost = peers_[pe].lost;
    if (lost.empty())
      lost =
          fmt::format("PE {} cannot be reached any more: UCX: {}: {}", pe, what, ucs_status_string(status));
  }

  Slot& take_slot(std::uint32_t from, std::size_t size) {
    Slot& slot = slots_[free_slots_.back()];
    free_slots_.pop_back();
    slot.from = from;
    slot.size = size;
    return slot;
  }
  void take(const Header& header, std::span<const std::byte> bytes) {
    Slot& slot = take_slot(header.from, bytes.size());
    std::memcpy(slot.bytes.get(), bytes.data(), bytes.size());
    end_fetch(slot, UCS_OK);
    answers_.push_back(header);
  }

  // --- The owner's thread.

  void step() {
    ucp_worker_progress(worker_.get());
    while (!arrived_.empty() && !free_slots_.empty()) {
      const Arrived next = std::move(arrived_.front());
      arrived_.pop_front();
      if (next.size > limits_.frame_bytes) refuse(next.size);
      if (next.announced != nullptr) {
        fetch(next);
      } else {
        take(next.header, next.small);
      }
    }
    for (const Header& header : answers_) {
      Sent& answer = new_sent();
      answer.token = nullptr;
      answer.to = header.from;
      answer.ends_left = 1;
      send(answer, kTaken, header.frame, {}, UCP_AM_SEND_FLAG_EAGER);
    }
    answers_.clear();
  }

  ucp_ep_h endpoint(std::uint32_t pe) {
    Peer& peer = peers_[pe];
    if (peer.endpoint == nullptr) {
      lost_arguments_.emplace_back(this, pe);
      peer.endpoint = make_endpoint(worker_, peer.address, was_lost, &lost_arguments_.back());
    }
    return peer.endpoint;
  }

  void fetch(const Arrived& frame) {
    endpoint(frame.header.from);  // by which UCX says that the peer is lost
    Slot& slot = take_slot(frame.header.from, frame.size);
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.recv_am = was_fetched;
    param.user_data = &slot;
    const ucs_status_ptr_t request =
        ucp_am_recv_data_nbx(worker_.get(), frame.announced, slot.bytes.get(), frame.size, &param);
    if (!UCS_PTR_IS_PTR(request)) end_fetch(slot, UCS_PTR_STATUS(request));
  }

  Sent& new_sent() {
    if (free_sent_.empty()) {
      sent_.push_back({this, static_cast<std::uint32_t>(sent_.size()), {}, nullptr, 0, 0});
      return sent_.back();
    }
    Sent& sent = *free_sent_.back();
    free_sent_.pop_back();
    return sent;
  }

  void send(Sent& sent, Message message, std::uint32_t frame, std::span<const std::byte> bytes,
            std::uint32_t flags) {
    sent.header = {pe_, frame};
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = flags;
    param.cb.send = was_sent;
    param.user_data = &sent;
    const ucs_status_ptr_t request = ucp_am_send_nbx(endpoint(sent.to), message, &sent.header,
                                                     sizeof sent.header, bytes.data(), bytes.size(), &param);
    if (!UCS_PTR_IS_PTR(request)) has_gone(sent, UCS_PTR_STATUS(request));
  }

  /// Collective. False: not all have come, or not in time.
  bool closes_endpoints() {
    const auto until = std::chrono::steady_clock::now() + kPatienceAtTheEnd;
    const auto progress = [&] {
      ucp_worker_progress(worker_.get());
      if (std::chrono::steady_clock::now() > until) fail(UCS_ERR_TIMED_OUT, "the end");
    };
    try {
      gather_now(*beside_, {}, progress);  // an endpoint that ends is lost for its peer
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
      if (sent.token != nullptr && sent.ends_left > 0) tokens.push_back(sent.token);
    }
    for (const Sent* sent : finished_) tokens.push_back(sent->token);
    stays_.push_back({std::move(context_), std::move(worker_), std::move(slots_), std::move(sent_)});
    return tokens;
  }

  std::unique_ptr<Transport> beside_;
  const TransportLimits limits_;
  const std::size_t small_bytes_;
  const std::uint32_t pe_;
  std::vector<Peer> peers_;

  std::deque<Sent> sent_;        // by number; each is under way, in finished_ or in free_sent_
  std::vector<Sent*> finished_;  // frames, since the last poll_sent()
  std::vector<Sent*> free_sent_;

  std::deque<Arrived> arrived_;  // frames that have no slot yet
  std::vector<Slot> slots_;      // each is free, fetched into, ready or the caller's
  std::vector<std::uint32_t> free_slots_;
  std::deque<std::uint32_t> ready_;
  std::vector<Header> answers_;  // to small frames that have been taken
  std::deque<std::pair<UcxTransport*, std::uint32_t>> lost_arguments_;

  Context context_;
  Worker worker_;  // ends first: its callbacks write the others
};

/// Collective. Why no PE can use UCX, "" if all can.
std::string open_all(UcxTransport& transport) {
  std::string why;
  try {
    transport.open();
  } catch (const std::exception& error) {
    why = error.what();
  }
  return first_reason(transport.beside(), why);
}

/// Collective. Who is not to do what PE 0 does, "" if all are.
std::string find_difference(Transport& beside, bool wanted) {
  const std::vector<GatherBlock> wishes = gather_now(beside, {wanted ? 1u : 0u});
  for (std::uint32_t pe = 1; pe < wishes.size(); ++pe) {
    if (wishes[pe].values[0] == wishes[0].values[0]) continue;
    return fmt::format("PE {} is to use UCX and PE {} is not: --transport must be the same on every PE",
                       wishes[0].values[0] != 0 ? 0 : pe, wishes[0].values[0] != 0 ? pe : 0);
  }
  return {};
}

}  // namespace

std::unique_ptr<Transport> connect(std::unique_ptr<Transport> beside, TransportLimits limits, bool wanted,
                                   std::size_t small_bytes) {
  auto transport = std::make_unique<UcxTransport>(std::move(beside), limits, small_bytes);
  std::string why;
  try {
    why = find_difference(transport->beside(), wanted);
    if (why.empty() && !wanted) return transport->take_beside();
    if (why.empty()) why = open_all(*transport);
    if (why.empty()) {
      transport->exchange_addresses();
      return transport;
    }
  } catch (...) {
    transport->close(false);
    throw;
  }
  transport->take_beside()->close(true);
  throw Error(Error::Kind::kNetwork, why);
}

}  // namespace esker::ucx
