// The aggregator's step, and the threads that repeat it.
#include <esker/aggregator/aggregator.hpp>

#include <ctime>
#include <string>

namespace esker {
namespace {

constexpr std::uint32_t kPackagesAStep = 16;
constexpr std::chrono::microseconds kLongestNap{1000};
constexpr std::chrono::microseconds kLongestNapBesideADevice{100};

std::chrono::nanoseconds read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

}  // namespace

/// One aggregator's own state. Whoever holds `busy` may touch the rest.
class Aggregators::One {
 public:
  One(const AggregatorSettings& s, BufferSink& sink)
      : pool{s.buffer_bytes, s.buffers}, buffers{s.pe, s.n_pes, pool, OnExhausted::kPushBack,
                                                 sink, s.tracer} {}

  alignas(kLineBytes) std::atomic<bool> busy{false};
  BufferPool pool;
  NodeBuffers buffers;
  bool holds_package = false;
  std::uint64_t ticket = 0;
  std::uint32_t position = 0;  // first message of the package not yet repacked
  std::chrono::nanoseconds looked_for_stale_at{};
  std::atomic<std::uint64_t> flushed{0};
  std::atomic<std::uint64_t> seen_epoch{0};  // by the last step
  std::atomic<std::uint32_t> was_open{0};
  std::atomic<std::uint32_t> was_blocked{0};
};

Aggregators::Aggregators(const AggregatorSettings& settings, PackageQueue queue, BufferSink& sink)
    : settings_{settings}, queue_{queue}, sink_{sink} {
  for (std::uint32_t i = 0; i < settings.threads; ++i) all_.push_back(std::make_unique<One>(settings, sink));
  for (std::uint32_t i = 0; i < settings.threads; ++i) threads_.emplace_back([this, i] { run(*all_[i], i); });
}

Aggregators::~Aggregators() { stop(); }

void Aggregators::stop() {
  stopping_.store(true, std::memory_order_release);
  bell_.ring();
  threads_.clear();  // joins
}

void Aggregators::run(One& one, std::uint32_t index) {
  if (settings_.tracer != nullptr) settings_.tracer->name_thread("aggregator " + std::to_string(index));
  // Nobody rings for a device's packages.
  if (settings_.producers_on_device) use_fine_timers();
  Backoff backoff{settings_.producers_on_device ? kLongestNapBesideADevice : kLongestNap};
  while (!stopping_.load(std::memory_order_acquire) && !failed_.load(std::memory_order_relaxed)) {
    if (try_step(one)) {
      backoff.reset();
    } else {
      // Half full, not one package: waking for each would switch threads a thousand times more often.
      // A flush that the last step could not finish is no news: it waits for somebody else, asleep.
      backoff.wait(bell_, [&] {
        return stopping_.load(std::memory_order_acquire) ||
               (one.was_blocked.load(std::memory_order_relaxed) != 0
                    ? one.pool.had_one()
                    : was_occupied() >= (queue_.slots() + 1) / 2 ||
                          one.seen_epoch.load(std::memory_order_relaxed) !=
                              epoch_.load(std::memory_order_relaxed));
      });
    }
  }
}

bool Aggregators::help() {
  bool moved = false;
  for (const auto& one : all_) moved |= try_step(*one);
  return moved;
}

bool Aggregators::try_step(One& one) {
  bool is_free = false;
  if (!one.busy.compare_exchange_strong(is_free, true, std::memory_order_acquire)) return false;
  struct Free {
    std::atomic<bool>& busy;
    ~Free() { busy.store(false, std::memory_order_release); }
  } const free{one.busy};
  // Where it threw, messages of a package have been taken that it does not know of.
  if (failed_.load(std::memory_order_relaxed)) return false;
  try {
    return step(one);
  } catch (...) {
    failed_.store(true, std::memory_order_relaxed);
    sink_.fail(current_error("aggregating messages"));
  }
  return false;
}

bool Aggregators::step(One& one) {
  // Read before the queue is found empty: what was published before the request is then repacked.
  const std::uint64_t epoch = epoch_.load(std::memory_order_acquire);
  one.seen_epoch.store(epoch, std::memory_order_relaxed);
  bool moved = false;
  bool drained = false;
  for (std::uint32_t i = 0; i < kPackagesAStep; ++i) {
    if (!one.holds_package) {
      if (settings_.producers_on_device && sink_.was_congested())
        break;  // on the host lanes check that themselves
      if (!queue_.try_peek(one.ticket)) {
        drained = true;
        break;
      }
      one.holds_package = true;
      one.position = 0;
      // Before any of them can leave, and so before a reply.
      const auto& taken = queue_.header(one.ticket);
      if (is_request(Command::from_word(taken.command).operation))
        asked_.fetch_add(taken.count, std::memory_order_release);
    }
    const auto& header = queue_.header(one.ticket);
    RepackSpan span(settings_.tracer, one.ticket, header.command, one.position);
    const PackageView package{header.command,
                              header.words,
                              header.count,
                              queue_.columns(header.words),
                              queue_.row(one.ticket, header.words, 0),
                              span.life()};
    const std::uint32_t taken = one.buffers.append(package, one.position);
    span.set_taken(taken - one.position);
    moved |= taken != one.position;
    messages_.fetch_add(taken - one.position, std::memory_order_relaxed);
    one.position = taken;
    if (taken < package.count) break;
    if (!settings_.aggregate) one.buffers.close();
    queue_.release(one.ticket);
    one.holds_package = false;
    packages_.fetch_add(1, std::memory_order_relaxed);
  }
  if (drained && one.flushed.load(std::memory_order_relaxed) < epoch) {
    moved |= !one.buffers.empty();
    one.buffers.close();
    // Packages stand in the queue that were published behind one that is not: they are the flush's too.
    if (was_occupied() == 0) {
      one.flushed.store(epoch, std::memory_order_release);  // [flush]
      moved = true;
    }
  } else if (drained && !moved && !one.buffers.empty()) {
    // The process's clock is a system call: read it twice a time-out, not at every idle step.
    const std::chrono::nanoseconds now = read_clock(CLOCK_MONOTONIC);
    if (now - one.looked_for_stale_at >= settings_.timeout / 2) {
      one.looked_for_stale_at = now;
      const bool producing = producing_.load(std::memory_order_relaxed);
      const IdleClock clock{producing, producing ? read_clock(CLOCK_PROCESS_CPUTIME_ID) : now};
      moved |= one.buffers.close_stale(clock, settings_.timeout, settings_.max_age);
    }
  }
  if (settings_.tracer != nullptr && moved && !settings_.producers_on_device) {
    settings_.tracer->add_counter(TraceWhat::kOccupied, static_cast<std::uint32_t>(queue_.was_occupied()));
  }
  one.was_open.store(one.buffers.open_buffers(), std::memory_order_relaxed);
  const std::uint32_t blocked = one.holds_package ? 1 : 0;
  if (one.was_blocked.load(std::memory_order_relaxed) != blocked)
    (void)one.was_blocked.exchange(blocked, std::memory_order_acq_rel);  // [blocked]
  return moved;
}

std::uint64_t Aggregators::request_flush() {
  const std::uint64_t epoch = epoch_.fetch_add(1, std::memory_order_acq_rel) + 1;
  // Where nothing is left, which is the rule beside a device, nobody need wake for it.
  (void)help();
  if (!flushed(epoch)) bell_.ring();
  return epoch;
}

bool Aggregators::flushed(std::uint64_t epoch) const {
  for (const auto& one : all_) {
    if (one->flushed.load(std::memory_order_acquire) < epoch) return false;  // [flush]
  }
  return true;
}

std::uint32_t Aggregators::was_open() const {
  std::uint32_t open = 0;
  for (const auto& one : all_) open += one->was_open.load(std::memory_order_relaxed);
  return open;
}

bool Aggregators::was_blocked() const {
  for (const auto& one : all_) {
    if (one->was_blocked.load(std::memory_order_relaxed) != 0) return true;
  }
  return false;
}

bool Aggregators::wait_for_buffers() {
  bool any = false;
  for (const auto& one : all_) any |= one->was_blocked.fetch_add(0, std::memory_order_acq_rel) != 0;
  return any;
}

}  // namespace esker
