// Stage 2: takes packages from the queue and repacks their messages by destination.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include <esker/aggregator/node_buffers.hpp>
#include <esker/queue/package_queue.hpp>
#include <esker/queue/waiting.hpp>

namespace esker {

struct AggregatorSettings {
  std::uint32_t threads;
  std::uint32_t pe;
  std::uint32_t n_pes;  // destinations
  std::uint32_t buffer_bytes;
  std::uint32_t buffers;  // in each thread's pool, at least n_pes
  std::chrono::nanoseconds timeout;
  std::chrono::nanoseconds max_age;
  bool aggregate = true;             // false: buffers are closed behind each package
  bool producers_on_device = false;  // their side of the queue is out of the host's sight
  Tracer* tracer = nullptr;
};

/// The aggregators of one PE: threads, each with its own node buffers, and threads that help while they wait.
///
/// Contract. Every package published before request_flush() returned epoch E has been repacked, and its
///           buffers are submitted, once flushed(E) holds.
/// Ordering. [flush] buffers submitted before an aggregator's `flushed` = E  happen before  what follows
///           flushed(E) on another thread.
///           [blocked] buffers given back before wait_for_buffers()  happen before  what follows a step that
///           was blocked, or wait_for_buffers() sees that step: both are read-modify-writes of one word.
/// Progress. A step never waits. An exhausted pool leaves the package half read, and the step says that
///           nothing moved; the network's recycling and ring() end that.
/// Errors.   What a step throws, on any thread, goes to the sink's fail(); after that none moves anything.
class Aggregators {
 public:
  Aggregators(const AggregatorSettings& settings, PackageQueue queue, BufferSink& sink);
  ~Aggregators();
  Aggregators(const Aggregators&) = delete;
  Aggregators& operator=(const Aggregators&) = delete;

  /// Ends the threads. Afterwards nothing is submitted.
  void stop();

  /// One step on behalf of an aggregator that is not running just now. Any thread. True if something
  /// moved.
  bool help();

  /// From now on whatever was published is closed as soon as the queue is empty, once.
  std::uint64_t request_flush();
  bool flushed(std::uint64_t epoch) const;

  /// Lanes are running: the time-out then counts this process's own running time, so that PEs that
  /// share a core do not close each other's buffers nearly empty (docs/design/aggregation.md).
  void set_producing(bool producing) { producing_.store(producing, std::memory_order_relaxed); }

  /// News for sleepers: packages, a flush, or buffers in the pool.
  void ring() { bell_.ring(); }

  std::uint64_t packages() const { return packages_.load(std::memory_order_relaxed); }
  std::uint64_t messages() const { return messages_.load(std::memory_order_relaxed); }
  /// Requests in packages that it has begun to repack: each counts before it can leave.
  std::uint64_t asked() const { return asked_.load(std::memory_order_acquire); }
  /// The counter behind messages(): where lanes run on a device, what they have published by now is known
  /// only as far as it has been repacked.
  const std::atomic<std::uint64_t>& messages_counter() const { return messages_; }
  /// Racy, for reports: node buffers that hold messages, and whether a package waits for a buffer.
  std::uint32_t was_open() const;
  bool was_blocked() const;
  /// The same for whoever has given buffers back, before: a step that is blocked and does not see them is
  /// seen.
  bool wait_for_buffers();

 private:
  class One;
  /// Packages that are published, or about to be. Producers on a device have none under way when a flush is
  /// asked for: their kernels have ended.
  std::uint64_t was_occupied() const { return settings_.producers_on_device ? 0 : queue_.was_occupied(); }
  void run(One& one, std::uint32_t index);
  bool try_step(One& one);
  bool step(One& one);

  const AggregatorSettings settings_;
  PackageQueue queue_;
  BufferSink& sink_;
  std::vector<std::unique_ptr<One>> all_;
  std::atomic<std::uint64_t> epoch_{0};
  std::atomic<bool> producing_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> failed_{false};
  std::atomic<std::uint64_t> packages_{0};
  std::atomic<std::uint64_t> messages_{0};
  std::atomic<std::uint64_t> asked_{0};
  Doorbell bell_;
  std::vector<std::jthread> threads_;
};

}  // namespace esker
