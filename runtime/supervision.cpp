// What the runtime keeps an eye on: peers that die, and hangs.
#include <algorithm>
#include <utility>

#include <esker/runtime/impl.hpp>

namespace esker {
namespace {
constexpr std::chrono::milliseconds kLookAtPeersEvery{500};
constexpr std::chrono::milliseconds kReportsTravel{1500};
constexpr std::chrono::milliseconds kPeersFindOut =
    HangInquiry::kTimeToAnswer + std::chrono::milliseconds{1000};
constexpr int kHangStatus = 1;
}  // namespace

std::uint64_t Runtime::Impl::activity() const {
  std::uint64_t sum = published_.load(std::memory_order_relaxed) + calls_.load(std::memory_order_relaxed) +
                      workers_->chunks_done() + aggregators_->messages() + network_->applied() +
                      network_->sent_by_handlers() + network_->sent_by_progress() +
                      network_->buffers_shipped();
  for (std::uint32_t pe = 0; pe < n_pes_; ++pe) {
    sum += network_->peer(pe).buffers_received.load(std::memory_order_relaxed);
  }
  return sum;
}

void Runtime::Impl::look_around() {
  const auto now = Clock::now();
  if (now >= next_look_at_peers_) {
    next_look_at_peers_ = now + kLookAtPeersEvery;
    look_at_peers();
  }
  group_lanes_wait_ = lanes_helped_.exchange(false, std::memory_order_relaxed);
  if (!failure_.is_set()) look_for_hang(now);
}

void Runtime::Impl::look_at_peers() {
  const std::string dead = owner_.transport().find_dead_peer();
  // Found twice, since it may have said why it left, and its words are still on their way.
  if (!dead.empty() && std::exchange(found_dead_peer_, true) && failure_.set(Error::Kind::kNetwork, dead)) {
    std::fputs(fmt::format("esker: PE {}: {}; the job cannot go on\n", pe_, dead).c_str(), stderr);
    network_->bell().ring();
    bell_.ring();
  }
}

PeStatus Runtime::Impl::status(Clock::time_point now) {
  PeStatus mine;
  mine.still = hang_.still(activity(), now);
  // A call that waits for kernels on this PE's GPU waits for nobody else.
  mine.waits = (call_waits_.load(std::memory_order_relaxed) && !network_->was_waiting_for_kernels()) ||
               waiting_lanes_.load(std::memory_order_relaxed) > 0 || group_lanes_wait_ ||
               !network_->was_in_handler().empty();
  return mine;
}

// Where nothing moves here, the job may still end: a PE computes outside Esker, a kernel runs for long, a
// process is stopped. The PEs know, so they are asked.
void Runtime::Impl::look_for_hang(Clock::time_point now) {
  PeStatus mine = status(now);
  if (inquiry_.start_if_due(mine, now)) {
    for (const std::uint32_t pe : inquiry_.to_ask(now)) network_->ask_for_status(pe);
  }
  if (!inquiry_.is_complete(now)) return;
  mine.doing = doing();
  std::vector<PeAnswer> answers = inquiry_.take_answers(mine, now);
  for (std::uint32_t pe = 0; pe < n_pes_; ++pe) {
    const PeerProcess process = owner_.transport().find_process(pe);
    const bool stopped = process.state == 'T' || process.state == 't';
    PeAnswer& answer = answers[pe];
    answer.process = process.id;
    answer.may_be_silent = stopped || !owner_.has_own_thread();
    answer.why_silent = stopped ? fmt::format("state {} (stopped)", process.state)
                        : owner_.has_own_thread()
                            ? "its network thread is inside one step, as in a handler that does not return"
                            : "it is outside Esker, and the program's own thread drives its network";
  }
  const Outlook outlook = judge(answers, hang_limit());
  inquiry_.schedule(outlook, answers, now);
  const auto first = std::find_if(answers.begin(), answers.end(), [](const PeAnswer& answer) {
    return answer.status && answer.status->waits;
  });
  if (outlook == Outlook::kCannotEnd || (outlook == Outlook::kMayEnd && first - answers.begin() == pe_)) {
    std::fputs(describe_wait(answers, mine.still, outlook, pe_).c_str(),
               stderr);  // one PE's warning is enough
  }
  if (outlook == Outlook::kCannotEnd) end_hanging();
}

void Runtime::Impl::end_hanging() {
  report_hang("nothing has moved here");
  broadcast_hang_report();
  const auto until = Clock::now() + kReportsTravel;
  while (Clock::now() < until) {
    if (!network_->progress()) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  owner_.transport().abort(kHangStatus);
}

void Runtime::Impl::check_for_hang() {
  // The network's owner looks for hangs, unless it hangs itself: inside a handler that does not return.
  if (!owner_.has_own_thread() || failure_.is_set() || config_.hang_seconds == 0) return;
  if (stuck_.still(owner_.steps(), Clock::now()) < hang_limit()) return;
  report_hang("the network thread has not moved", true);
  std::this_thread::sleep_for(kPeersFindOut);  // that this PE does not answer, and say where they wait
  std::_Exit(kHangStatus);  // only that thread may call MPI; the launcher ends the other PEs
}

std::string Runtime::Impl::doing() const {
  std::string text = "is outside Esker, in the program's own code";
  const std::lock_guard lock(call_mutex_);
  if (call_.name != nullptr) {
    const double seconds = std::chrono::duration<double>(Clock::now() - call_.since).count();
    const std::string network = network_->was_waiting_for();
    if (call_.is_kernel) {
      text = fmt::format("runs kernel '{}' for {:.1f} s", call_.name, seconds);
    } else {
      text = fmt::format("is in {} for {:.1f} s{}", call_.name, seconds,
                         network.empty() ? "" : ", which waits for " + network);
    }
  }
  if (waiting_lanes_.load(std::memory_order_relaxed) > 0 || group_lanes_wait_) text += ", with lanes blocked";
  if (const std::string handler = network_->was_in_handler(); !handler.empty()) {
    text += fmt::format(", and handler '{}' has not returned", handler);
  }
  return text;
}

void Runtime::Impl::heard_question(std::uint32_t pe) {
  const auto now = Clock::now();
  inquiry_.heard_question(pe, now);
  network_->answer_status(pe, status(now).word(), doing());
}

void Runtime::Impl::heard_answer(std::uint32_t pe, std::uint64_t value, std::string_view text) {
  inquiry_.heard_answer(pe, PeStatus::from(value, text));
}

StageSnapshot Runtime::Impl::snapshot() const {
  StageSnapshot s;
  s.pe = pe_;
  if (const std::lock_guard lock(call_mutex_); call_.name != nullptr) {
    s.user_thread = fmt::format("in {} for {:.1f} s", call_.name,
                                std::chrono::duration<double>(Clock::now() - call_.since).count());
    if (const auto lanes = waiting_lanes_.load(std::memory_order_relaxed); lanes > 0) {
      s.user_thread +=
          fmt::format(", {} lane thread{} blocked by a full queue or bound", lanes, lanes == 1 ? "" : "s");
    }
  } else {
    s.user_thread = "outside Esker, in the program's own code";
  }
  s.network_thread = network_->was_waiting_for();
  s.handler = network_->was_in_handler();
  s.published = device_ ? aggregators_->messages() + network_->sent_by_progress()
                        : published_.load(std::memory_order_relaxed);
  s.sent_by_handlers = network_->sent_by_handlers();
  s.aggregated = aggregators_->messages() + network_->sent_by_progress();
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

void Runtime::Impl::broadcast_hang_report() {
  if (!std::exchange(hang_broadcast_, true)) network_->broadcast_hang_report();
}

void Runtime::Impl::heard_hang_report(std::uint32_t pe, std::uint64_t sent_by_it) {
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
  broadcast_hang_report();  // what this PE has sent, the others cannot know
}

}  // namespace esker
