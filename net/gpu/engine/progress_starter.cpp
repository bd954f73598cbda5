// The starter's loop.
#include <sched.h>

#include <esker/net/gpu/engine/progress_starter.hpp>
#include <esker/queue/waiting.hpp>

namespace esker::gpu {
namespace {

constexpr std::chrono::milliseconds kBetweenQueries{1};
constexpr std::chrono::milliseconds kBetweenWakes{20};  // with nothing to look for
constexpr std::chrono::microseconds kAwake{Backoff::kYieldsBesideADevice > 0 ? 200 : 0};

}  // namespace

ProgressStarter::ProgressStarter(ProgressLauncher& launcher, const HostWords& host)
    : launcher_{launcher}, host_{host}, thread_{[this](const std::stop_token& stopping) { run(stopping); }} {}

void ProgressStarter::ask(std::uint64_t number, std::size_t handler) {
  {
    const std::lock_guard lock(mutex_);
    handler_ = handler;
    asked_.store(number, std::memory_order_release);  // [asked]
  }
  wake_.notify_one();
}

void ProgressStarter::expect() {
  {
    const std::lock_guard lock(mutex_);
    is_expecting_.store(true, std::memory_order_relaxed);
  }
  wake_.notify_one();
}

void ProgressStarter::check() {
  if (!has_failed_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  throw Error(*failure_);
}

void ProgressStarter::note_launch() {
  launches_.fetch_add(1, std::memory_order_release);
  wake_.notify_one();
}

void ProgressStarter::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  wake_.notify_all();
  thread_.join();
}

void ProgressStarter::run(const std::stop_token& stopping) {
  Clock::time_point next_query;
  while (!stopping.stop_requested()) {
    const auto now = Clock::now();
    const std::uint64_t asked = wait_for_request(now, stopping);
    if (is_expecting_.exchange(false, std::memory_order_relaxed)) awake_until_ = Clock::now() + kAwake;
    try {
      if (asked != started_ || now >= next_query) {
        look_for_the_end();
        next_query = now + kBetweenQueries;
      }
      if (asked == started_) continue;
      const bool beside_kernel = launches_.load(std::memory_order_acquire) != launches_ended_;
      launcher_.start({asked, handler_, beside_kernel});
      started_ = asked;
      awake_until_ = Clock::now() + kAwake;  // a barrier asks for one after the other
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_.emplace(current_error("starting progress kernels on the GPU"));
      has_failed_.store(true, std::memory_order_release);
      return;
    }
  }
}

/// Returns the number of the last request, new or not.
std::uint64_t ProgressStarter::wait_for_request(Clock::time_point now, const std::stop_token& stopping) {
  if (now < awake_until_) {
    sched_yield();
    return asked_.load(std::memory_order_acquire);  // [asked]
  }
  std::unique_lock lock(mutex_);
  const bool may_end = launches_.load(std::memory_order_acquire) != launches_ended_ ||
                       started_ != host_.progress_kernel.load_relaxed();
  wake_.wait_until(lock, stopping, now + (may_end ? kBetweenQueries : kBetweenWakes), [&] {
    return asked_.load(std::memory_order_relaxed) != started_ ||
           is_expecting_.load(std::memory_order_relaxed);
  });
  return asked_.load(std::memory_order_relaxed);  // [asked] by the mutex
}

/// What a kernel has left in mailboxes is applied though nobody waits for it: its end calls for progress
/// kernels here and at the peers.
void ProgressStarter::look_for_the_end() {
  const std::uint64_t launches = launches_.load(std::memory_order_acquire);
  if (launches != launches_ended_) {
    if (launcher_.is_kernel_running()) return;
    launches_ended_ = launches;
    kernels_ended_.store(true, std::memory_order_release);
  }
  if (started_ == 0 || host_.progress_kernel.load_acquire() == started_) return;
  launcher_.check_progress_kernel();
}

}  // namespace esker::gpu
