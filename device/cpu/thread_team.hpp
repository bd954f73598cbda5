// The host threads that run the groups of a launch together.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <esker/device/cpu/launch.hpp>

namespace esker::cpu {

/// A fixed team: the calling thread, member 0, and `threads` - 1 others, which sleep between launches.
///
/// Contract. run() is called by one thread at a time, and not by a member that works.
/// Errors   The first exception of a member is thrown by run(), once all members have ended. Chunks that have
///          not begun then do not run.
class ESKER_API ThreadTeam {
 public:
  class Chunks;
  /// What a member does in one launch. It calls chunks.run().
  using Work = std::function<void(std::uint32_t member, Chunks& chunks)>;
  /// Calls `on_start(member)` first on each thread of its own.
  ThreadTeam(std::uint32_t threads, std::function<void(std::uint32_t member)> on_start);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  /// Has the members run groups [0, groups) in chunks. `between` runs on the calling thread after each of its
  /// chunks, and while other members have theirs to end; it says whether something has moved. A single group
  /// is the calling thread's.
  void run(std::uint64_t groups, const Work& work, const std::function<bool()>& between);

  std::uint32_t members() const { return members_; }
  /// Of the launch that has thrown last: the lane that threw; nothing where none did.
  const std::optional<ThrowingLane>& throwing_lane() const { return throwing_; }
  /// Chunks finished so far, for reports. Any thread.
  std::uint64_t chunks_done() const { return chunks_done_.load(std::memory_order_relaxed); }

 private:
  void stop();
  void thread_main(std::uint32_t member);
  void keep(std::exception_ptr error);

  const std::uint32_t members_;
  const std::function<void(std::uint32_t)> on_start_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t launch_ = 0;              // guarded by mutex_
  std::uint32_t running_ = 0;             // guarded by mutex_: other threads in this launch
  bool stopping_ = false;                 // guarded by mutex_
  std::exception_ptr error_;              // guarded by mutex_
  std::optional<ThrowingLane> throwing_;  // guarded by mutex_ until run() throws
  const Work* work_ = nullptr;
  std::uint64_t groups_ = 0;
  std::uint64_t chunk_ = 1;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<bool> failed_{false};
  std::atomic<std::uint64_t> chunks_done_{0};
  std::vector<std::jthread> threads_;
};

/// A member's part of one launch.
class ThreadTeam::Chunks {
 public:
  Chunks(ThreadTeam& team, const std::function<bool()>* between) : team_{team}, between_{between} {}

  /// Calls `function(first, last)` for groups [first, last) as long as there are some.
  template <class Function>
  void run(Function function) {
    keep_error([&] {
      while (!team_.failed_.load(std::memory_order_relaxed)) {
        const std::uint64_t first = team_.next_.fetch_add(team_.chunk_, std::memory_order_relaxed);
        if (first >= team_.groups_) break;
        const std::uint64_t end = first + team_.chunk_;
        function(first, end < team_.groups_ ? end : team_.groups_);
        team_.chunks_done_.fetch_add(1, std::memory_order_relaxed);
        if (between_ != nullptr) (*between_)();
      }
    });
  }
  /// What `body()` throws ends the launch.
  template <class Body>
  void keep_error(const Body& body) {
    try {
      body();
    } catch (...) {
      team_.keep(std::current_exception());
    }
  }

 private:
  ThreadTeam& team_;
  const std::function<bool()>* between_;
};

}  // namespace esker::cpu
