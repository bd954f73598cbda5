// Peers that die, hangs, and the report that ends one.
#include <esker/runtime/supervision.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

namespace esker {
namespace {
constexpr std::chrono::milliseconds kPollPeersEvery{500};
constexpr std::chrono::milliseconds kReportsTravel{1500};
// A peer asks, waits for the answer and reports; where processors are shared it comes to that seconds late.
constexpr std::chrono::milliseconds kPeersFindOut =
    HangInquiry::kTimeToAnswer + std::chrono::milliseconds{3000};
constexpr int kHangStatus = 1;
}  // namespace

Supervision::Supervision(const Watched& watched)
    : w_{watched},
      hang_{hang_limit()},
      stuck_{hang_limit()},
      inquiry_{watched.job.pe, watched.job.n_pes, hang_limit()} {}

std::uint64_t Supervision::activity() const {
  std::uint64_t sum = w_.lanes.published.load(std::memory_order_relaxed) + w_.call.count() +
                      w_.workers.chunks_done() + w_.aggregators.messages() + w_.network.applied() +
                      w_.network.sent_by_handlers() + w_.network.sent_by_progress() +
                      w_.network.block_copies() + w_.network.shipping().buffers_shipped();
  for (std::uint32_t pe = 0; pe < w_.job.n_pes; ++pe) {
    sum += w_.network.shipping().peer(pe).buffers_received.load(std::memory_order_relaxed);
  }
  return sum;
}

void Supervision::poll() {
  const auto now = Clock::now();
  if (now >= next_peer_poll_) {
    next_peer_poll_ = now + kPollPeersEvery;
    poll_peers();
  }
  group_lanes_wait_ = w_.producers.take_helped();
  if (!w_.failure.is_set()) poll_for_hang(now);
}

void Supervision::poll_peers() {
  const std::string dead = w_.owner.transport().find_dead_peer();
  // Found twice, since it may have said why it left, and its words are still on their way.
  if (!dead.empty() && std::exchange(found_dead_peer_, true) && w_.failure.set(Error::Kind::kNetwork, dead)) {
    std::fputs(fmt::format("esker: {}: {}; the job cannot go on\n", w_.job.name(), dead).c_str(), stderr);
    w_.network.bell().ring();
    w_.user_bell.ring();
  }
}

PeStatus Supervision::status(Clock::time_point now) {
  PeStatus mine;
  mine.still = hang_.still(activity(), now);
  // A call that waits for kernels on this PE's GPU waits for no other PE.
  mine.waits = (w_.collectives.was_waiting() && !w_.network.was_working()) || lanes_wait() ||
               !w_.network.was_in_handler().empty();
  return mine;
}

// Where nothing moves here, the job may still end: a PE computes outside Esker, a kernel runs for long, a
// process is stopped. The PEs know, so they are asked.
void Supervision::poll_for_hang(Clock::time_point now) {
  PeStatus mine = status(now);
  if (inquiry_.start_if_due(mine, now)) {
    for (const std::uint32_t pe : inquiry_.to_ask(now)) w_.network.ask_for_status(pe);
  }
  if (!inquiry_.is_complete(now)) return;
  mine.doing = doing();
  std::vector<PeAnswer> answers = inquiry_.take_answers(mine, now);
  for (std::uint32_t pe = 0; pe < w_.job.n_pes; ++pe) {
    const PeerProcess process = w_.owner.transport().find_process(pe);
    const bool stopped = process.state == 'T' || process.state == 't';
    PeAnswer& answer = answers[pe];
    answer.name = w_.job.name(pe);
    answer.process = process.id;
    answer.may_be_silent = stopped || !w_.owner.has_own_thread();
    answer.why_silent = stopped ? fmt::format("state {} (stopped)", process.state)
                        : w_.owner.has_own_thread()
                            ? "its network thread is inside one step, as in a handler that does not return"
                            : "it is outside Esker, and the program's own thread drives its network";
  }
  const Outlook outlook = judge(answers, hang_limit());
  inquiry_.schedule(outlook, answers, now);
  const auto first = std::find_if(answers.begin(), answers.end(), [](const PeAnswer& answer) {
    return answer.status && answer.status->waits;
  });
  if (outlook == Outlook::kCannotEnd ||
      (outlook == Outlook::kMayEnd && first - answers.begin() == w_.job.pe)) {
    std::fputs(describe_wait(answers, mine.still, outlook, w_.job.pe).c_str(),
               stderr);  // one PE's warning is enough
  }
  if (outlook == Outlook::kCannotEnd) end_hanging();
}

void Supervision::end_hanging() {
  report_hang("nothing has moved here");
  broadcast_hang_report();
  const auto until = Clock::now() + kReportsTravel;
  while (Clock::now() < until) {
    if (!w_.network.progress()) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  w_.owner.transport().abort(kHangStatus);
}

void Supervision::check_for_hang() {
  // The network's owner polls for hangs, unless it hangs itself: inside a handler that does not return.
  if (!w_.owner.has_own_thread() || w_.failure.is_set() || w_.config.hang_seconds == 0) return;
  if (stuck_.still(w_.owner.steps(), Clock::now()) < hang_limit()) return;
  report_hang("the network thread has not moved", true);
  std::this_thread::sleep_for(kPeersFindOut);  // that this PE does not answer, and say where they wait
  std::_Exit(kHangStatus);  // that thread may be inside a call of MPI; the launcher ends the other PEs
}

std::string Supervision::doing() const {
  std::string text = "is outside Esker, in the program's own code";
  if (const auto call = w_.call.was_in()) {
    const std::string network = w_.network.was_waiting_for();
    if (call->is_kernel) {
      text = fmt::format("runs kernel '{}' for {:.1f} s", call->name, call->seconds);
    } else {
      text = fmt::format("is in {} for {:.1f} s{}", call->name, call->seconds,
                         network.empty() ? "" : ", which waits for " + network);
    }
  }
  if (lanes_wait()) text += ", with lanes blocked";
  if (const std::string handler = w_.network.was_in_handler(); !handler.empty()) {
    text += fmt::format(", and handler '{}' has not returned", handler);
  }
  return text;
}

void Supervision::heard_question(std::uint32_t pe) {
  const auto now = Clock::now();
  inquiry_.heard_question(pe, now);
  w_.network.answer_status(pe, status(now).word(), doing());
}

void Supervision::heard_answer(std::uint32_t pe, std::uint64_t value, std::string_view text) {
  inquiry_.heard_answer(pe, PeStatus::from(value, text));
}

StageSnapshot Supervision::snapshot() const {
  StageSnapshot s;
  s.pe = w_.job.pe;
  s.name = w_.job.name();
  if (const auto call = w_.call.was_in()) {
    s.user_thread = fmt::format("in {} for {:.1f} s", call->name, call->seconds);
    if (const auto lanes = w_.waits.lanes_waiting(); lanes > 0) {
      s.user_thread +=
          fmt::format(", {} lane thread{} blocked by a full queue or bound", lanes, lanes == 1 ? "" : "s");
    }
  } else {
    s.user_thread = "outside Esker, in the program's own code";
  }
  s.network_thread = w_.network.was_waiting_for();
  s.handler = w_.network.was_in_handler();
  s.published = w_.executor.published(w_.lanes, w_.aggregators).load(std::memory_order_relaxed) +
                w_.network.sent_by_progress();
  s.sent_by_handlers = w_.network.sent_by_handlers();
  s.aggregated = w_.aggregators.messages() + w_.network.sent_by_progress();
  s.routed = w_.network.shipping().messages_local() + w_.network.shipping().messages_remote();
  s.applied = w_.network.applied();
  s.slots = w_.queue.slots();
  s.device = w_.executor.was_doing();
  s.slots_occupied = w_.executor.was_occupied(w_.queue);
  s.open_buffers = w_.aggregators.was_open();
  s.aggregator_blocked = w_.aggregators.was_blocked();
  for (std::uint32_t pe = 0; pe < w_.job.n_pes; ++pe) {
    const PeerCounters& peer = w_.network.shipping().peer(pe);
    s.peers.push_back({peer.messages_sent.load(std::memory_order_relaxed),
                       peer.buffers_sent.load(std::memory_order_relaxed),
                       peer.messages_received.load(std::memory_order_relaxed),
                       peer.buffers_received.load(std::memory_order_relaxed),
                       peer.buffers_applied.load(std::memory_order_relaxed)});
  }
  return s;
}

void Supervision::report_hang(const std::string& headline, bool network_stuck) {
  if (hang_reported_.exchange(true)) return;
  StageSnapshot seen = snapshot();
  seen.network_stuck = network_stuck;
  write_hang_report(seen,
                    fmt::format("{} for {} s (ESKER_HANG_SECONDS; 0 turns this off) and the job ends",
                                headline, w_.config.hang_seconds),
                    w_.config.hang_file);
  w_.trace.write();  // what follows ends the process
}

void Supervision::broadcast_hang_report() {
  if (!std::exchange(hang_broadcast_, true)) w_.network.broadcast_hang_report();
}

void Supervision::heard_hang_report(std::uint32_t pe, std::uint64_t sent_by_it) {
  const std::uint64_t arrived =
      w_.network.shipping().peer(pe).messages_received.load(std::memory_order_relaxed);
  const std::string missing =
      sent_by_it == arrived
          ? fmt::format("{} reports a hang; all of its {} messages have arrived here", w_.job.name(pe),
                        sent_by_it)
          : fmt::format(
                "{0} reports a hang; stuck stage ship: {0} sent {1} messages to {2}, {3} have arrived, "
                "{0} owes {4}",
                w_.job.name(pe), sent_by_it, w_.job.name(), arrived, sent_by_it - arrived);
  std::fputs(fmt::format("esker: {}: {}\n", w_.job.name(), missing).c_str(), stderr);
  report_hang(fmt::format("{} has seen nothing move", w_.job.name(pe)));
  broadcast_hang_report();  // what this PE has sent, the others cannot know
}

}  // namespace esker
