// Active messages that announce a frame, which its receiver fetches into memory of its own when it has some.
#include <esker/net/ucx/transport.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

constexpr unsigned kFrameMessage = 0;  // the one kind of active message
constexpr std::chrono::seconds kPatienceAtTheEnd{10};

/// Contract. As Transport's.
/// Protocol. A frame is announced, and fetched when its receiver has a free slot: so a receiver holds the
/// bytes of
///           `receives` frames, and no more than an announcement of any other. Its sender has sent it when it
///           has been fetched.
/// Progress. In try_receive() and poll_sent(). Callbacks, which UCX makes in there, only take notes.
class UcxTransport final : public Transport {
 public:
  UcxTransport(std::unique_ptr<Transport> beside, TransportLimits limits)
      : beside_{std::move(beside)},
        limits_{limits},
        pe_{beside_->pe()},
        peers_(beside_->n_pes()),
        slots_(limits.receives) {}

  /// Local.
  void open() {
    context_ = make_context(n_pes(), pes_on_host());
    worker_ = make_worker(context_);
    ucp_am_handler_param_t handler{};
    handler.field_mask =
        UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = kFrameMessage;
    handler.cb = announced;
    handler.arg = this;
    check(ucp_worker_set_am_recv_handler(worker_.get(), &handler), "ucp_worker_set_am_recv_handler");
    peers_[pe_].address = address_of(worker_);
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
      slots_[i].transport = this;
      slots_[i].bytes.reset(new (std::align_val_t{kAlignment}) std::byte[limits_.frame_bytes]);
      free_slots_.push_back(i);
    }
  }

  /// Collective, after open() on all PEs.
  void exchange_addresses() {
    const std::vector<std::byte> mine = peers_[pe_].address;
    const std::vector<GatherBlock> sizes = gather_now(*beside_, {mine.size()});
    std::size_t longest = 0;
    for (std::uint32_t pe = 0; pe < n_pes(); ++pe) {
      peers_[pe].address.resize(sizes[pe].values[0]);
      longest = std::max(longest, peers_[pe].address.size());
    }
    std::array<std::uint64_t, 6> piece{};
    const auto bytes_at = [&](const std::vector<std::byte>& address, std::size_t at) {
      return at < address.size() ? std::min(sizeof piece, address.size() - at) : 0;
    };
    for (std::size_t at = 0; at < longest; at += sizeof piece) {
      if (const std::size_t bytes = bytes_at(mine, at)) std::memcpy(piece.data(), &mine[at], bytes);
      const std::vector<GatherBlock> pieces = gather_now(*beside_, piece);
      for (std::uint32_t pe = 0; pe < n_pes(); ++pe) {
        std::vector<std::byte>& address = peers_[pe].address;
        if (const std::size_t bytes = bytes_at(address, at))
          std::memcpy(&address[at], pieces[pe].values.data(), bytes);
      }
    }
  }
  Transport& beside() { return *beside_; }
  std::unique_ptr<Transport> take_beside() { return std::move(beside_); }

  bool is_for_any_thread() const override { return beside_->is_for_any_thread(); }
  std::uint32_t pe() const override { return pe_; }
  std::uint32_t n_pes() const override { return static_cast<std::uint32_t>(peers_.size()); }
  std::uint32_t pes_on_host() const override { return beside_->pes_on_host(); }
  std::uint64_t frame_memory_bytes() const override {
    return beside_->frame_memory_bytes() + limits_.receives * limits_.frame_bytes;
  }
  std::string name() const override {
    return fmt::format("ucx (UCX {}) beside {}", ucp_get_version_string(), beside_->name());
  }

  bool try_send(std::uint32_t to, std::span<const std::byte> bytes, void* token) override {
    if (bytes.size() > limits_.frame_bytes) refuse(bytes.size());
    Peer& peer = peers_[to];
    if (peer.under_way == limits_.receives || !peer.lost.empty()) return false;
    Sent& sent = new_sent();
    sent = {this, token, to, true};
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_AM_SEND_FLAG_RNDV;
    param.cb.send = was_sent;
    param.user_data = &sent;
    const ucs_status_ptr_t request =
        ucp_am_send_nbx(endpoint(to), kFrameMessage, &pe_, sizeof pe_, bytes.data(), bytes.size(), &param);
    if (UCS_PTR_IS_ERR(request)) {
      free_sent_.push_back(&sent);
      fail(UCS_PTR_STATUS(request), fmt::format("ucp_am_send_nbx to PE {}", to));
    }
    ++peer.under_way;
    if (request == nullptr) finished_.push_back(&sent);
    return true;
  }

  void poll_sent(std::vector<void*>& tokens) override {
    if (finished_.empty()) ucp_worker_progress(worker_.get());
    for (Sent* const sent : finished_) {
      tokens.push_back(sent->token);
      --peers_[sent->pe].under_way;
      sent->is_under_way = false;
      free_sent_.push_back(sent);
    }
    finished_.clear();
  }

  std::optional<Frame> try_receive() override {
    if (ready_.empty()) {
      ucp_worker_progress(worker_.get());
      fetch();
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
    std::uint32_t under_way = 0;  // sends
    std::string lost;             // why it cannot be reached any more
  };
  struct Sent {
    UcxTransport* transport;
    void* token;
    std::uint32_t pe;
    bool is_under_way;
  };
  struct Announced {
    void* frame;  // UCX's
    std::size_t size;
    std::uint32_t from;
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
  };
  static inline std::vector<Stays>& stays_ = *new std::vector<Stays>;

  [[noreturn]] void refuse(std::size_t bytes) const {
    throw Error(Error::Kind::kNetwork,
                fmt::format("UCX: a frame of {} bytes is longer than {}", bytes, limits_.frame_bytes));
  }

  // --- Callbacks. An exception has no way through UCX.

  static ucs_status_t announced(void* self, const void* header, std::size_t header_bytes, void* frame,
                                std::size_t size, const ucp_am_recv_param_t* param) noexcept {
    Announced it{frame, size, 0};
    if (header_bytes != sizeof it.from || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0)
      return UCS_OK;  // no frame of this transport's
    std::memcpy(&it.from, header, sizeof it.from);
    static_cast<UcxTransport*>(self)->announced_.push_back(it);
    return UCS_INPROGRESS;
  }

  static void was_sent(void* request, ucs_status_t status, void* user_data) noexcept {
    auto& sent = *static_cast<Sent*>(user_data);
    ucp_request_free(request);
    if (status == UCS_OK) return sent.transport->finished_.push_back(&sent);
    sent.transport->lose(sent.pe, status, "ucp_am_send_nbx");
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

  // --- The owner's thread.

  ucp_ep_h endpoint(std::uint32_t pe) {
    Peer& peer = peers_[pe];
    if (peer.endpoint != nullptr) return peer.endpoint;
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(peer.address.data());
    params.err_handler.cb = was_lost;
    params.err_handler.arg = &lost_arguments_.emplace_back(this, pe);
    check(ucp_ep_create(worker_.get(), &params, &peer.endpoint), fmt::format("ucp_ep_create to PE {}", pe));
    return peer.endpoint;
  }

  void fetch() {
    while (!announced_.empty() && !free_slots_.empty()) {
      const Announced next = announced_.front();
      announced_.pop_front();
      if (next.size > limits_.frame_bytes) refuse(next.size);
      endpoint(next.from);  // UCX says by it that the peer is lost
      Slot& slot = slots_[free_slots_.back()];
      free_slots_.pop_back();
      slot.size = next.size;
      slot.from = next.from;
      ucp_request_param_t param{};
      param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
      param.cb.recv_am = was_fetched;
      param.user_data = &slot;
      const ucs_status_ptr_t request =
          ucp_am_recv_data_nbx(worker_.get(), next.frame, slot.bytes.get(), next.size, &param);
      if (request == nullptr || UCS_PTR_IS_ERR(request)) end_fetch(slot, UCS_PTR_STATUS(request));
    }
  }

  Sent& new_sent() {
    if (free_sent_.empty()) return sent_.emplace_back();
    Sent& sent = *free_sent_.back();
    free_sent_.pop_back();
    return sent;
  }

  /// Collective. False: not all have come, or not in time.
  bool closes_endpoints() {
    const auto until = std::chrono::steady_clock::now() + kPatienceAtTheEnd;
    const auto step = [&] {
      ucp_worker_progress(worker_.get());
      if (std::chrono::steady_clock::now() > until) fail(UCS_ERR_TIMED_OUT, "the end");
    };
    try {
      gather_now(*beside_, {}, step);  // an endpoint that ends is lost for its peer
      for (Peer& peer : peers_) {
        if (peer.endpoint == nullptr) continue;
        const ucp_request_param_t param{};
        const ucs_status_ptr_t request = ucp_ep_close_nbx(std::exchange(peer.endpoint, nullptr), &param);
        if (!UCS_PTR_IS_PTR(request)) continue;
        while (ucp_request_check_status(request) == UCS_INPROGRESS) step();
        ucp_request_free(request);
      }
    } catch (const Error&) {
      return false;
    }
    return true;
  }

  /// The program may go on, and UCX may read and write what it was told to for as long as its worker lives.
  /// So that, and what it may touch, stays.
  std::vector<void*> leave() {
    stays_.push_back({std::move(context_), std::move(worker_), std::move(slots_)});
    std::vector<void*> tokens;
    for (const Sent& sent : sent_) {
      if (sent.is_under_way) tokens.push_back(sent.token);
    }
    return tokens;
  }

  std::unique_ptr<Transport> beside_;
  const TransportLimits limits_;
  const std::uint32_t pe_;
  std::vector<Peer> peers_;

  std::deque<Sent> sent_;        // each is under way, in finished_ or in free_sent_
  std::vector<Sent*> finished_;  // since the last poll_sent()
  std::vector<Sent*> free_sent_;
  std::vector<Slot> slots_;
  std::deque<Announced> announced_;        // frames of peers, not yet asked for
  std::vector<std::uint32_t> free_slots_;  // each slot is in here, fetched into, in ready_ or the caller's
  std::deque<std::uint32_t> ready_;
  std::deque<std::pair<UcxTransport*, std::uint32_t>> lost_arguments_;

  Context context_;
  Worker worker_;  // ends first: its callbacks write the others
};

/// Collective. Why no PE can use UCX, "" if all can.
std::string open_all(UcxTransport& transport, bool wanted) {
  std::string why;
  if (wanted) {
    try {
      transport.open();
    } catch (const std::exception& error) {
      why = error.what();
    }
  }
  return first_reason(transport.beside(), why);
}

}  // namespace

std::unique_ptr<Transport> connect(std::unique_ptr<Transport> beside, TransportLimits limits, bool wanted) {
  auto transport = std::make_unique<UcxTransport>(std::move(beside), limits);
  std::string why;
  try {
    const std::vector<GatherBlock> wishes = gather_now(transport->beside(), {wanted ? 1u : 0u});
    for (std::uint32_t pe = 1; pe < wishes.size() && why.empty(); ++pe) {
      const bool want = wishes[pe].values[0] != 0;
      if (want != (wishes[0].values[0] != 0))
        why = fmt::format("PE {} is to use UCX and PE {} is not: --transport must be the same on every PE",
                          want ? pe : 0, want ? 0 : pe);
    }
    if (why.empty()) {
      if (!wanted) return transport->take_beside();
      why = open_all(*transport, wanted);
      if (why.empty()) {
        transport->exchange_addresses();
        return transport;
      }
    }
  } catch (...) {
    transport->close(false);
    throw;
  }
  transport->take_beside()->close(true);
  throw Error(Error::Kind::kNetwork, why);
}

}  // namespace esker::ucx
