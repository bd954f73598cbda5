// Threads that run one function together and meet in it.
#pragma once

#include <atomic>
#include <cstdint>
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

/// Calls work(t) for each t below `threads` at once, and waits for all.
template <class Work>
void run_together(std::uint32_t threads, const Work& work) {
  std::vector<std::jthread> others;
  for (std::uint32_t t = 1; t < threads; ++t) others.emplace_back(work, t);
  work(0);
}

}  // namespace esker::bench
