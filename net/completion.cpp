// The steps of a call.
#include <esker/net/completion.hpp>

#include <algorithm>
#include <utility>

namespace esker {

using Kind = NetworkRequest::Kind;

Completion::Completion(Transport& transport, const Failure& failure, Doorbell& user_bell, Tracer* tracer)
    : transport_{transport},
      failure_{failure},
      user_bell_{user_bell},
      tracer_{tracer},
      blocks_(transport.n_pes()) {}

bool Completion::step() {
  if (failure_.is_set()) {
    // The user's thread sees the failure and does not come back for the answer.
    active_ = nullptr;
    posted_.store(nullptr, std::memory_order_relaxed);
    return false;
  }
  if (active_ == nullptr) return begin();
  switch (phase_) {
    case Phase::kFlush:
      return flush();
    case Phase::kPeers:
      for (CompletionStage* const stage : stages_) {
        if (!stage->have_peers_applied()) return false;
      }
      if (!has_replies()) return false;
      complete(false);
      return true;
    case Phase::kDrain:
      return drain();
    case Phase::kGather:
      return gather();
    case Phase::kExchange:
      if (!transport_.test_exchange()) return false;
      complete(false);
      return true;
  }
  return false;
}

bool Completion::begin() {
  active_ = posted_.exchange(nullptr, std::memory_order_acquire);  // [request]
  if (active_ == nullptr) return false;
  if (active_->kind == Kind::kGather) {
    transport_.begin_gather(active_->mine);
    phase_ = Phase::kGather;
    now_waits_for("a gather: some PE has not called it");
    return true;
  }
  if (active_->kind == Kind::kExchange) {
    transport_.begin_exchange(active_->exchange);
    phase_ = Phase::kExchange;
    now_waits_for("other PEs' part of a collective call");
    return true;
  }
  for (CompletionStage* const stage : stages_) stage->begin(*active_);
  phase_ = Phase::kFlush;
  flushing_ = 0;
  rounds_ = 0;
  was_equal_ = false;
  next_round_ = {};
  now_waits_for(stages_.front()->waits_for());
  return true;
}

bool Completion::flush() {
  bool moved = false;
  for (; flushing_ < stages_.size(); moved = true) {
    if (!stages_[flushing_]->flushed()) {
      now_waits_for(stages_[flushing_]->waits_for());
      return moved;
    }
    if (++flushing_ < stages_.size()) stages_[flushing_]->flush();
  }
  if (active_->kind == Kind::kQuiet) {
    now_waits_for("peers to apply this PE's messages");
    for (CompletionStage* const stage : stages_) stage->ask_peers();
    phase_ = Phase::kPeers;
    return true;
  }
  // What has been handed on moves before it is counted, in the first round twice: then peers' messages are
  // under way too, and a step of the network is cheaper than a round.
  if (moved) return true;
  phase_ = Phase::kDrain;
  if (rounds_ > 0) return drain();
  now_waits_for("this PE's messages to leave and to be applied");
  return true;
}

bool Completion::has_replies() {
  std::uint64_t answered = 0, asked = 0;
  for (const CompletionStage* stage : stages_) answered += stage->answered();
  for (const CompletionStage* stage : stages_) asked += stage->asked();
  if (answered >= asked) return true;
  now_waits_for("replies to this PE's requests");
  return false;
}

bool Completion::drain() {
  for (CompletionStage* const stage : stages_) {
    if (!stage->drained()) return false;
  }
  if (std::chrono::steady_clock::now() < next_round_) return false;
  for (CompletionStage* const stage : stages_) {
    if (stage->flushed()) continue;
    start_over();
    return true;
  }
  count();
  transport_.begin_gather(active_->mine);
  phase_ = Phase::kGather;
  now_waits_for("termination detection: some PE is not idle or has not called it");
  return true;
}

void Completion::count() {
  auto& values = active_->mine.values;
  std::fill_n(values.begin(), std::size_t{NetworkRequest::kBarrierValues}, 0);
  // Applied is read before sent: a handler's sends are counted before its own message is.
  for (const CompletionStage* stage : stages_) values[NetworkRequest::kApplied] += stage->applied();
  for (const CompletionStage* stage : stages_) values[NetworkRequest::kSent] += stage->sent();
  for (const CompletionStage* stage : stages_) {
    if (stage->may_send()) values[NetworkRequest::kMaySend] = 1;
    if (!stage->is_final()) values[NetworkRequest::kNotFinal] = 1;
  }
}

bool Completion::gather() {
  if (!transport_.test_gather(blocks_)) return false;
  if (active_->kind == Kind::kGather || !is_same_call()) {  // the user's thread says which calls PEs are in
    active_->all = blocks_;
    complete(false);
    return true;
  }
  ++rounds_;
  const Sums now = sums();
  if (now.may_send) {
    for (CompletionStage* const stage : stages_) stage->heard_may_send();
  }
  // Sums of different moments prove nothing until they have been seen twice, but where what has been sent is
  // final: then no more than that is ever applied.
  const bool unchanged = was_equal_ && now.applied == last_.applied && now.sent == last_.sent;
  if (now.equal() && (unchanged || !now.may_send)) {
    active_->all = blocks_;
    complete(true);
    return true;
  }
  was_equal_ = now.equal();
  last_ = now;
  start_over();
  // Two or three rounds are the rule, after the rendezvous. More mean that handlers go on sending, or that
  // something is lost.
  next_round_ = std::chrono::steady_clock::now() +
                (rounds_ < kPromptRounds ? std::chrono::microseconds{0} : kBetweenRounds);
  flush();
  return true;
}

void Completion::start_over() {
  for (CompletionStage* const stage : stages_) stage->start_over();
  flushing_ = 0;
  phase_ = Phase::kFlush;
}

bool Completion::is_same_call() const {
  return std::all_of(blocks_.begin(), blocks_.end(), [this](const GatherBlock& block) {
    return block.collective == active_->mine.collective && block.sequence == active_->mine.sequence;
  });
}

Completion::Sums Completion::sums() const {
  Sums sums;
  for (const GatherBlock& block : blocks_) {
    sums.applied += block.values[NetworkRequest::kApplied];
    sums.sent += block.values[NetworkRequest::kSent];
    sums.may_send |= block.values[NetworkRequest::kMaySend] != 0;
    sums.final &= block.values[NetworkRequest::kNotFinal] == 0;
  }
  return sums;
}

void Completion::complete(bool all_applied) {
  if (is_flushing()) {
    for (CompletionStage* const stage : stages_) stage->end(all_applied);
  }
  now_waits_for("");
  std::exchange(active_, nullptr)->done.store(true, std::memory_order_release);  // [done]
  user_bell_.ring();
}

void Completion::now_waits_for(const char* what) {
  const char* const before = doing_.load(std::memory_order_relaxed);
  if (before == what) return;
  doing_.store(what, std::memory_order_relaxed);
  if (tracer_ == nullptr) return;
  const std::int64_t now = steady_ns();
  if (*before != 0) {
    TraceEvent event{};
    event.at_ns = doing_since_ns_;
    event.duration_ns = now - event.at_ns;
    event.text = before;
    event.track = tracer_->track();
    event.what = TraceWhat::kWait;
    event.phase = TracePhase::kSpan;
    tracer_->add(event);
  }
  doing_since_ns_ = now;
}

}  // namespace esker
