// Lanes that wait, and the bound on pending messages.
#include <esker/runtime/producers.hpp>

#include <algorithm>

namespace esker {

std::uint32_t Producers::columns_within(std::uint64_t pending_limit, std::uint32_t lane_threads) {
  if (pending_limit == 0) return 0;
  // Two packages in flight and one being filled, on each worker.
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(pending_limit / (4 * std::uint64_t{lane_threads}), 1, 1u << 16));
}

void Producers::help() {
  failure_.raise_if_set();
  if (!helped_.load(std::memory_order_relaxed)) helped_.store(true, std::memory_order_relaxed);
  waits_.help();
}

void Producers::wait_empty(PackageQueue& queue, std::uint64_t ticket) {
  waits_.wait(
      "a free slot in the package queue", [&] { return queue.was_empty(ticket); }, true);
}

bool Producers::may_claim(std::uint64_t claimed, std::uint64_t messages) const {
  // Handlers' messages depart too, at times before they are counted as sent: the difference has a sign.
  const auto pending =
      static_cast<std::int64_t>(claimed + network_.sent_by_handlers() - network_.shipping().departed());
  // What lies open in each worker's outbox counts too: it has been generated.
  const std::uint64_t staged = std::uint64_t{context_.most_columns} * (lane_threads_ - 1);
  return pending <= 0 || static_cast<std::uint64_t>(pending) + staged + messages <= pending_limit_;
}

bool Producers::try_claim_pending(std::uint64_t messages) {
  std::uint64_t claimed = claimed_.load(std::memory_order_relaxed);
  do {
    if (!may_claim(claimed, messages)) return false;
  } while (!claimed_.compare_exchange_weak(claimed, claimed + messages, std::memory_order_relaxed));
  return true;
}

void Producers::claim_pending(std::uint64_t messages) {
  while (!try_claim_pending(messages)) {
    waits_.wait(
        "pending messages to leave (pending_messages)",
        [&] { return may_claim(claimed_.load(std::memory_order_relaxed), messages); }, true,
        [this] { flush_pending(); });
  }
}

void Producers::unclaim_pending(std::uint64_t messages) {
  claimed_.fetch_sub(messages, std::memory_order_relaxed);
}

void Producers::flush_pending() {
  // What other lanes have published since, and what handlers have sent, is waited for too.
  const std::uint64_t published = counters_.published.load(std::memory_order_relaxed);
  if (flushed_published_.exchange(published, std::memory_order_relaxed) != published)
    aggregators_.request_flush();
  network_.flush_handlers();
}

void Producers::will_publish(Command command, std::uint32_t count) {
  if (network_.was_congested()) {
    waits_.wait(
        "handlers' messages to leave", [&] { return !network_.was_congested(); }, true);
  }
  if (may_send(command)) counters_.call_handlers.store(true, std::memory_order_relaxed);
  counters_.published.fetch_add(count, std::memory_order_release);
}

void Producers::has_published() {
  if (context_.queue.was_occupied() >= context_.queue.slots() / 2) aggregators_.ring();
}

void Producers::has_combined(std::uint64_t calls, std::uint64_t remote) {
  combined_local_.fetch_add(calls - remote, std::memory_order_relaxed);
  combined_remote_.fetch_add(remote, std::memory_order_relaxed);
}

void Producers::start_block(const detail::BlockCall& call, const Caller& caller) {
  blocks_.start(call, &caller);
}

void Producers::send_bytes(const detail::BytesCall& call, const Caller& caller) {
  if (network_.was_congested()) {
    waits_.wait(
        "the network to take messages with bytes", [this] { return !network_.was_congested(); }, true);
  }
  blocks_.send_bytes(call, &caller);
}

}  // namespace esker
