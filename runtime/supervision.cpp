// What the runtime keeps an eye on: peers that die, and hangs.
#include <esker/runtime/impl.hpp>

namespace esker {
namespace {
constexpr std::chrono::milliseconds kLookAtPeersEvery{500};
constexpr std::chrono::milliseconds kReportsTravel{1500};
constexpr int kHangStatus = 1;
}  // namespace

std::uint64_t Runtime::Impl::activity() const {
  std::uint64_t sum = published_.load(std::memory_order_relaxed) + calls_.load(std::memory_order_relaxed) +
                      workers_->chunks_done() + aggregators_->messages() + network_->applied() +
                      network_->sent_by_handlers() + network_->sent_by_passes() + network_->buffers_shipped();
  for (std::uint32_t pe = 0; pe < n_pes_; ++pe) {
    sum += network_->peer(pe).buffers_received.load(std::memory_order_relaxed);
  }
  return sum;
}

void Runtime::Impl::look_around() {
  const auto now = Clock::now();
  if (now >= next_look_at_peers_) {
    next_look_at_peers_ = now + kLookAtPeersEvery;
    const std::string dead = owner_.transport().find_dead_peer();
    // Found twice, since it may have said why it left, and its words are still on their way.
    if (!dead.empty() && std::exchange(found_dead_peer_, true) && failure_.set(Error::Kind::kNetwork, dead)) {
      std::fputs(fmt::format("esker: PE {}: {}; the job cannot go on\n", pe_, dead).c_str(), stderr);
      network_->bell().ring();
      bell_.ring();
    }
  }
  const bool waits =
      call_waits_.load(std::memory_order_relaxed) || waiting_lanes_.load(std::memory_order_relaxed) > 0;
  if (!failure_.is_set() && hang_.check(activity(), waits)) {
    report_hang("nothing has moved here");
    network_->broadcast_hang_report();
    const auto until = Clock::now() + kReportsTravel;
    while (Clock::now() < until) {
      if (!network_->progress()) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    owner_.transport().abort(kHangStatus);
  }
}

void Runtime::Impl::check_for_hang() {
  // The network's owner looks for hangs, unless it hangs itself: inside a handler that does not return.
  if (!owner_.has_own_thread() || failure_.is_set()) return;
  const std::uint64_t steps = owner_.steps();
  if (!stuck_.check(steps, true)) return;
  report_hang("the network thread has not moved", true);
  std::this_thread::sleep_for(kReportsTravel);  // the peers have seen nothing move either, and report
  std::_Exit(kHangStatus);  // only that thread may call MPI; the launcher ends the other PEs
}

StageSnapshot Runtime::Impl::snapshot() const {
  StageSnapshot s;
  s.pe = pe_;
  if (const char* call = call_.load(std::memory_order_relaxed); call != nullptr) {
    const Clock::duration since{Clock::now().time_since_epoch().count() -
                                call_since_.load(std::memory_order_relaxed)};
    s.user_thread = fmt::format("in {} for {:.1f} s", call, std::chrono::duration<double>(since).count());
    if (const auto lanes = waiting_lanes_.load(std::memory_order_relaxed); lanes > 0) {
      s.user_thread +=
          fmt::format(", {} lane thread{} blocked by a full queue or bound", lanes, lanes == 1 ? "" : "s");
    }
  } else {
    s.user_thread = "outside Esker, in the program's own code";
  }
  s.network_thread = network_->was_waiting_for();
  s.handler = network_->was_in_handler();
  s.published = device_ ? aggregators_->messages() + network_->sent_by_passes()
                        : published_.load(std::memory_order_relaxed);
  s.sent_by_handlers = network_->sent_by_handlers();
  s.aggregated = aggregators_->messages() + network_->sent_by_passes();
  s.routed = network_->messages_local() + network_->messages_remote();
  s.applied = network_->applied();
  s.slots = context_.queue.slots();
  if (device_) s.device = device_->was_doing();
  s.slots_occupied = device_ ? 0 : context_.queue.was_occupied();  // its tail is out of the host's sight
  s.open_buffers = aggregators_->was_open();
  s.aggregator_blocked = aggregators_->was_blocked();
  for (std::uint32_t pe = 0; pe < n_pes_; ++pe) {
    const PeerCounters& peer = network_->peer(pe);
    s.peers.push_back({peer.messages_sent.load(std::memory_order_relaxed),
                       peer.buffers_sent.load(std::memory_order_relaxed),
                       peer.messages_received.load(std::memory_order_relaxed),
                       peer.buffers_received.load(std::memory_order_relaxed),
                       peer.buffers_applied.load(std::memory_order_relaxed)});
  }
  return s;
}

void Runtime::Impl::report_hang(const std::string& headline, bool network_stuck) {
  if (hang_reported_.exchange(true)) return;
  StageSnapshot seen = snapshot();
  seen.network_stuck = network_stuck;
  write_hang_report(seen,
                    fmt::format("{} for {} s (ESKER_HANG_SECONDS; 0 turns this off) and the job ends",
                                headline, config_.hang_seconds),
                    config_.hang_file);
  trace_.write();  // what follows ends the process
}

void Runtime::Impl::join_hang_report(std::uint32_t pe, std::uint64_t sent_by_it) {
  const std::uint64_t arrived = network_->peer(pe).messages_received.load(std::memory_order_relaxed);
  const std::string owed =
      sent_by_it == arrived
          ? fmt::format("PE {} reports a hang; all of its {} messages have arrived here", pe, sent_by_it)
          : fmt::format(
                "PE {} reports a hang; stuck stage ship: PE {} sent {} messages to PE {}, {} have arrived, "
                "PE {} owes {}",
                pe, pe, sent_by_it, pe_, arrived, pe, sent_by_it - arrived);
  std::fputs(fmt::format("esker: PE {}: {}\n", pe_, owed).c_str(), stderr);
  report_hang(fmt::format("PE {} has seen nothing move", pe));
}

}  // namespace esker
