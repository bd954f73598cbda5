// Consumer threads, and the wait for the last message.
#include <esker/bench/queue/consumers.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <thread>
#include <utility>

#include <esker/aggregator/wire.hpp>
#include <esker/queue/waiting.hpp>

namespace esker::bench {
namespace {

constexpr std::uint32_t kBufferBytes = 64 << 10;  // the library's default
constexpr std::chrono::microseconds kLongestNap{50};
constexpr std::chrono::microseconds kLookInterval{20};

/// Gives every closed buffer back to its pool, and adds up its words where asked to.
class Recycler final : public BufferSink {
 public:
  void submit(Buffer* buffer) override {
    arrived_.messages += buffer->messages;
    if (is_checking) add_up(*buffer);
    recycle(buffer);
  }
  Arrived take() { return std::exchange(arrived_, {}); }

  bool is_checking = false;

 private:
  void add_up(const Buffer& buffer) {
    wire::RunReader reader(buffer.bytes.get());
    for (wire::Run run; reader.next(run);) {
      // What repacking took out of word 0.
      arrived_.sum += run.count * address_word(buffer.destination, 0);
      for (std::uint32_t r = 0; r < run.words; ++r) {
        const std::uint64_t* row = run.address + std::size_t{r} * run.count;
        for (std::uint32_t i = 0; i < run.count; ++i) arrived_.sum += row[i];
      }
    }
  }

  Arrived arrived_;
};

}  // namespace

/// One consumer's own state. `messages` is read by the thread that waits for the end.
class alignas(kLineBytes) Consumers::One {
 public:
  One(Work work, std::uint32_t destinations)
      : work_{work},
        pool_{kBufferBytes, 2 * destinations},
        buffers_{0, destinations, pool_, OnExhausted::kPushBack, recycler_} {}

  /// Takes packages until `stop`.
  void consume(PackageQueue queue, const std::atomic<bool>& stop, Doorbell& bell) {
    Backoff backoff{kLongestNap};
    while (!stop.load(std::memory_order_acquire)) {
      std::uint64_t ticket = 0;
      if (!queue.try_peek(ticket)) {
        backoff.wait(bell, [&] { return stop.load(std::memory_order_acquire); });
        continue;
      }
      backoff.reset();
      const auto& header = queue.header(ticket);
      const PackageView package{header.command, header.words, header.count, queue.columns(header.words),
                                queue.row(ticket, header.words, 0)};
      if (work_ == Work::kRead) {
        read(package);
      } else {
        // The pool has two buffers a destination and each comes back at once, so it is never exhausted.
        buffers_.append(package, 0);
      }
      queue.release(ticket);
      messages.store(messages.load(std::memory_order_relaxed) + package.count, std::memory_order_relaxed);
    }
  }

  void check(bool checking) { recycler_.is_checking = checking; }
  /// What came since the last call. Not while consume() runs.
  Arrived take() {
    const std::uint64_t seen = messages.exchange(0, std::memory_order_relaxed);
    if (work_ == Work::kRead) return {seen, std::exchange(sum_, 0)};
    buffers_.close();
    return recycler_.take();
  }

  std::atomic<std::uint64_t> messages{0};

 private:
  void read(const PackageView& package) {
    std::uint64_t sum = 0;
    for (std::uint32_t r = 0; r < package.words; ++r) {
      const std::uint64_t* row = package.rows + std::size_t{r} * package.stride;
      // Else the loop is four instructions, and a consumer a sixth slower where they cross a cache line.
#pragma GCC unroll 4
      for (std::uint32_t i = 0; i < package.count; ++i) sum += row[i];
    }
    sum_ += sum;
  }

  Work work_;
  std::uint64_t sum_ = 0;
  Recycler recycler_;
  BufferPool pool_;
  NodeBuffers buffers_;
};

Consumers::Consumers(Producers& producers, std::uint32_t threads, Work work, std::uint32_t destinations)
    : producers_{producers} {
  for (std::uint32_t i = 0; i < threads; ++i) all_.push_back(std::make_unique<One>(work, destinations));
}
Consumers::~Consumers() = default;

std::uint64_t Consumers::arrived_messages() const {
  std::uint64_t messages = 0;
  for (const auto& one : all_) messages += one->messages.load(std::memory_order_relaxed);
  return messages;
}

double Consumers::run(const Production& production, std::uint64_t messages, Arrived* check) {
  using Clock = std::chrono::steady_clock;
  const PackageQueue queue = producers_.queue();
  for (const auto& one : all_) one->check(check != nullptr);
  std::atomic<bool> stop{false};
  Doorbell bell;
  std::latch ready(static_cast<std::ptrdiff_t>(all_.size()) + 1);
  std::vector<std::jthread> threads;
  for (const auto& one : all_) {
    threads.emplace_back([&, &one = *one] {
      ready.arrive_and_wait();
      one.consume(queue, stop, bell);
    });
  }
  ready.arrive_and_wait();
  const auto begin = Clock::now();
  producers_.start(production);
  std::uint64_t seen = 0;
  auto moved = begin;
  while (seen < messages) {
    std::this_thread::sleep_for(kLookInterval);
    const std::uint64_t now_seen = arrived_messages();
    const auto now = Clock::now();
    if (now_seen != seen) {
      seen = now_seen;
      moved = now;
    } else if (now - moved > std::chrono::seconds{kHangSeconds}) {
      std::fprintf(stderr,
                   "esker-bench-queue: no package arrived for %d s; %llu of %llu messages came, "
                   "%u slots of %u bytes, %zu consumers; %s\n",
                   kHangSeconds, static_cast<unsigned long long>(seen),
                   static_cast<unsigned long long>(messages), producers_.how().slots,
                   producers_.how().package_bytes, all_.size(), producers_.state().c_str());
      std::_Exit(1);
    }
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  stop.store(true, std::memory_order_release);
  bell.ring();
  threads.clear();  // joins
  producers_.finish();
  for (const auto& one : all_) {
    const Arrived arrived = one->take();
    if (check == nullptr) continue;
    check->messages += arrived.messages;
    check->sum += arrived.sum;
  }
  return seconds;
}

Arrived expected_of(const Production& production, std::uint32_t words) {
  Arrived all;
  for (std::uint64_t lane = 0; lane < production.lanes; ++lane) {
    const std::uint64_t mine = production.messages_of(lane);
    all.messages += mine;
    for (std::uint64_t m = 0; m < mine && words > 0; ++m) {
      all.sum += words * production.first_word(lane, m) + std::uint64_t{words} * (words - 1) / 2;
    }
  }
  return all;
}

}  // namespace esker::bench
