// Threads that run one function together and meet in it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace esker::bench {

/// Contract. All members of a team of `count` call meet() equally often.
/// Ordering. [met] What a member does before meet() happens before what others do after it.
class Meeting {
 public:
  explicit Meeting(std::uint32_t count) : count_{count} {}

  void meet() {
    const std::uint64_t round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);  // [met]
      return;
    }
    for (int looks = 0; round_.load(std::memory_order_acquire) == round; ++looks) {  // [met]
      if (looks > kLooks) std::this_thread::yield();
    }
  }

 private:
  static constexpr int kLooks = 20'000;  // tens of microseconds
  const std::uint32_t count_;
  alignas(64) std::atomic<std::uint32_t> arrived_{0};
  alignas(64) std::atomic<std::uint64_t> round_{0};
};

/// Threads that stay, so that a run does not wait for new ones to find a core.
class Team {
 public:
  explicit Team(std::uint32_t count) {
    for (std::uint32_t t = 1; t < count; ++t) others_.emplace_back([this, t] { serve(t); });
  }
  ~Team() { run({}); }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Calls work(t) for each t below the team's number at once, work(0) here, and waits for all.
  void run(const std::function<void(std::uint32_t)>& work) {
    work_ = work;
    busy_.store(static_cast<std::uint32_t>(others_.size()), std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);  // [given]
    round_.notify_all();
    if (work) work(0);
    for (std::uint32_t left = busy_.load(std::memory_order_acquire); left > 0;  // [done]
         left = busy_.load(std::memory_order_acquire))
      busy_.wait(left, std::memory_order_acquire);
  }

 private:
  /// Until there is no work in a round.
  void serve(std::uint32_t t) {
    for (std::uint64_t round = 0, goes_on = 1; goes_on != 0; ++round) {
      round_.wait(round, std::memory_order_acquire);  // [given]
      if (work_) work_(t);
      goes_on = work_ ? 1 : 0;
      if (busy_.fetch_sub(1, std::memory_order_release) == 1) busy_.notify_all();  // [done]
    }
  }

  std::function<void(std::uint32_t)> work_;
  std::atomic<std::uint64_t> round_{0};
  std::atomic<std::uint32_t> busy_{0};
  std::vector<std::jthread> others_;  // last: they use the rest
};

}  // namespace esker::bench
