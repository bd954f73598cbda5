// A PE reduced to its aggregators: the test publishes packages and plays the network.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include <esker/aggregator/aggregator.hpp>
#include <esker/queue/package_memory.hpp>

#include "collected.hpp"

namespace esker {

/// Keeps what any thread submits until the test's thread takes it.
class SharedSink final : public BufferSink {
 public:
  void submit(Buffer* buffer) override {
    const std::lock_guard lock(mutex_);
    held_.push_back(buffer);
  }
  bool was_congested() const override { return congested; }
  /// Null: none.
  Buffer* take() {
    const std::lock_guard lock(mutex_);
    if (held_.empty()) return nullptr;
    Buffer* const buffer = held_.front();
    held_.pop_front();
    return buffer;
  }

  std::atomic<bool> congested{false};  // as the test says

 private:
  std::mutex mutex_;
  std::deque<Buffer*> held_;  // guarded by mutex_
};

struct OnePe {
  static constexpr std::uint32_t kSource = 1;

  OnePe(AggregatorSettings settings, std::uint32_t slots, std::uint32_t payload_bytes)
      : memory{slots, payload_bytes}, aggregators{settings, memory.queue(), sink} {}

  /// Plays the network for one buffer: checks and recycles it. False: there was none.
  bool receive_one(Ledger& ledger) {
    Buffer* const buffer = sink.take();
    if (buffer == nullptr) return false;
    ledger.receive(*buffer);
    recycle(buffer);
    aggregators.ring();
    return true;
  }

  PackageMemory memory;
  SharedSink sink;
  Aggregators aggregators;
};

/// Writes messages into a slot that the caller has seen empty, and publishes it.
inline void publish(PackageQueue queue, std::uint64_t ticket, Command command, std::uint32_t words,
                    const std::vector<std::uint64_t>& address_words) {
  for (std::uint32_t i = 0; i < address_words.size(); ++i) {
    queue.row(ticket, words, 0)[i] = address_words[i];
    for (std::uint32_t r = 1; r < words; ++r) {
      queue.row(ticket, words, r)[i] = value_of_row(address_words[i] & kOffsetMask, r);
    }
  }
  queue.publish(ticket, command.word(), words, static_cast<std::uint32_t>(address_words.size()));
}

}  // namespace esker
