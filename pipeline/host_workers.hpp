// The threads that serve a run's host stages.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <esker/device/platform.hpp>
#include <esker/pipeline/seat.hpp>
#include <esker/queue/waiting.hpp>

namespace esker::pipeline::detail {

/// Contract There are as many threads as seats. Where all may work at a time, each keeps a seat. Where
///          fewer may, so many run, and each takes a turn behind its last one, so that a frame goes
///          through all stages on one core, while it is in the cache; else at the most downstream seat
///          that has work, so that nothing is begun while something can be finished. Seats behind the one
///          that another thread serves are left to it; after some, a thread looks at all.
/// Progress A function may wait, for a file or for room. relieve() sees a thread that has been inside
///          one for a millisecond or two, and lets another thread run in its place. In the end each seat has
///          a thread, so stages never wait for each other for want of threads.
class HostWorkers {
 public:
  using OnThrow = std::function<void(std::uint32_t stage)>;  // in a catch clause

  /// `threads` work at a time, 0 for one a core. `on_end()`: all seats have ended.
  HostWorkers(Doorbell& bell, bool has_gpu, std::uint32_t threads, OnThrow on_throw,
              std::function<void()> on_end);
  HostWorkers(const HostWorkers&) = delete;
  HostWorkers& operator=(const HostWorkers&) = delete;

  /// `depth`: how far the stage is from the sources.
  void add(std::uint32_t stage, std::uint32_t depth, std::unique_ptr<Seat> seat);
  /// Error{kOutOfMemory}: a thread cannot be made. Seats that have one are served until the run is over.
  void start();
  /// Returns when all seats have ended. Once the sources have, it looks for that for some while, awake: to
  /// wake takes tens of microseconds.
  void await_end();
  /// After that: its threads.
  void join();
  /// From time to time, by one thread.
  void relieve();

 private:
  static constexpr std::uint32_t kNowhere = ~0u;
  struct Place {
    std::uint32_t stage, depth;
    std::unique_ptr<Seat> seat;
    alignas(kLineBytes) std::atomic<bool> is_taken{false};  // of a seat that has ended, for good
    std::atomic<bool> has_ended{false};
  };
  /// Of a thread.
  struct alignas(kLineBytes) Turns {
    std::atomic<std::uint64_t> count{0};           // odd: it is in a stage's function
    std::atomic<std::uint32_t> goes_to{kNowhere};  // the depth at which it will look for work first
    const Place* last = nullptr;                   // where it has just worked
    std::uint32_t skipped = 0;                     // seats left to others since it skipped none
    // The watcher's.
    std::uint64_t seen = 0;
    std::chrono::steady_clock::time_point since;
  };

  void work(std::uint32_t thread);
  /// A seat that nobody takes any more.
  void end(Place& place);
  bool try_turn(std::uint32_t thread);
  /// At a seat one step from the sources farther than where this thread has just made something.
  bool try_turn_behind(const Place& made_by, Turns& turns);
  /// Another thread is about to look for work there.
  bool is_expected(std::uint32_t depth, std::uint32_t thread) const;
  /// False: somebody else has it, or there was nothing to do.
  bool try_turn_at(Place& place, Turns& turns);
  bool has_work(std::uint32_t thread);
  bool has_work_at(const Place& place) const;
  bool have_ended() const { return left_.load(std::memory_order_acquire) == 0; }
  void park(std::uint32_t thread);

  Doorbell& bell_;
  const bool has_gpu_;
  const OnThrow on_throw_;
  const std::function<void()> on_end_;
  const std::uint32_t at_a_time_;
  bool roams_ = false;
  std::vector<std::unique_ptr<Place>> places_;  // the most downstream first
  std::vector<Turns> turns_;
  std::atomic<std::size_t> left_{0};     // seats that have not ended ...
  std::atomic<std::size_t> sources_{0};  // ... of them, of sources
  bool has_sources_ = false;
  std::atomic<std::uint32_t> active_{0};  // threads that are not parked: the first ones
  std::mutex mutex_;
  std::condition_variable unparked_, nearly_ended_;
  std::vector<std::thread> threads_;
};

}  // namespace esker::pipeline::detail
