// Chunks of groups, handed out by a counter.
#include <esker/device/cpu/thread_team.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace esker::cpu {
namespace {
constexpr std::uint64_t kMostGroupsAChunk = 16;  // a few thousand lanes: the caller makes progress in between
constexpr std::chrono::microseconds kNap{200};
}  // namespace

ThreadTeam::ThreadTeam(std::uint32_t threads, std::function<void(std::uint32_t member)> on_start)
    : members_{threads}, on_start_{std::move(on_start)} {
  try {
    for (std::uint32_t i = 1; i < threads; ++i) threads_.emplace_back([this, i] { thread_main(i); });
  } catch (...) {
    stop();  // those that have begun, or their destructors wait for ever
    throw;
  }
}

ThreadTeam::~ThreadTeam() { stop(); }

void ThreadTeam::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

void ThreadTeam::keep(std::exception_ptr error) {
  failed_.store(true, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  if (error_) return;
  error_ = std::move(error);
  throwing_ = take_throwing_lane();
}

void ThreadTeam::run(std::uint64_t groups, const Work& work, const std::function<bool()>& between) {
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    groups_ = groups;
    chunk_ = std::clamp<std::uint64_t>(groups / (std::uint64_t{members_} * 16), 1, kMostGroupsAChunk);
    next_.store(0, std::memory_order_relaxed);
    failed_.store(false, std::memory_order_relaxed);
    error_ = nullptr;
    if (groups > 1) {  // waking costs more than most single groups
      running_ = static_cast<std::uint32_t>(threads_.size());
      ++launch_;
      changed_.notify_all();
    }
  }
  take_throwing_lane();  // what an earlier launch left
  Chunks chunks(*this, &between);
  work(0, chunks);
  std::unique_lock lock(mutex_);
  // Lanes of the other members may wait for the network, which may be this thread's to drive.
  bool moved = false;
  while (!changed_.wait_for(lock, moved ? std::chrono::microseconds{0} : kNap,
                            [this] { return running_ == 0; })) {
    lock.unlock();
    moved = between();
    lock.lock();
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadTeam::thread_main(std::uint32_t member) {
  on_start_(member);
  std::uint64_t seen = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || launch_ != seen; });
      if (stopping_) return;
      seen = launch_;
    }
    take_throwing_lane();
    Chunks chunks(*this, nullptr);
    (*work_)(member, chunks);
    const std::lock_guard lock(mutex_);
    if (--running_ == 0) changed_.notify_all();
  }
}

}  // namespace esker::cpu
