// Chunks of groups, handed out by a counter.
#include <esker/runtime/lane_workers.hpp>

#include <esker/aggregator/trace.hpp>
#include <esker/error.hpp>

#include <algorithm>
#include <chrono>

namespace esker {
namespace {
constexpr std::uint64_t kMostGroupsAChunk = 16;  // a few thousand lanes: the caller makes progress in between
constexpr std::chrono::microseconds kNap{200};
}  // namespace

LaneWorkers::LaneWorkers(std::uint32_t threads, const detail::KernelContext& context,
                         const std::string& thread_name) {
  for (std::uint32_t i = 0; i < threads; ++i) {
    workers_.push_back(std::make_unique<detail::HostWorker>(detail::HostWorker{context, Outbox{context}}));
  }
  try {
    for (std::uint32_t i = 1; i < threads; ++i) {
      threads_.emplace_back([this, i, thread_name] {
        set_thread_name(thread_name);
        thread_main(i);
      });
    }
  } catch (...) {
    stop();  // those that have begun, or their destructors wait for ever
    throw;
  }
}

LaneWorkers::~LaneWorkers() { stop(); }

void LaneWorkers::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

void LaneWorkers::run(std::uint64_t groups, const Function& function, const std::function<bool()>& between,
                      const char* name) {
  {
    const std::lock_guard lock(mutex_);
    function_ = &function;
    name_ = name;
    groups_ = groups;
    chunk_ = std::clamp<std::uint64_t>(groups / (workers_.size() * 16), 1, kMostGroupsAChunk);
    next_.store(0, std::memory_order_relaxed);
    failed_.store(false, std::memory_order_relaxed);
    error_ = nullptr;
    if (groups > 1) {  // waking costs more than most single groups
      running_ = static_cast<std::uint32_t>(threads_.size());
      ++launch_;
      changed_.notify_all();
    }
  }
  work(*workers_[0], &between);
  std::unique_lock lock(mutex_);
  // Lanes of the other workers may wait for the network, which may be this thread's to drive.
  bool moved = false;
  while (!changed_.wait_for(lock, moved ? std::chrono::microseconds{0} : kNap,
                            [this] { return running_ == 0; })) {
    lock.unlock();
    moved = between();
    lock.lock();
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void LaneWorkers::thread_main(std::uint32_t index) {
  if (Tracer* const tracer = workers_[index]->context.tracer; tracer != nullptr) {
    tracer->name_thread("lane thread " + std::to_string(index));
  }
  std::uint64_t seen = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || launch_ != seen; });
      if (stopping_) return;
      seen = launch_;
    }
    work(*workers_[index], nullptr);
    const std::lock_guard lock(mutex_);
    if (--running_ == 0) changed_.notify_all();
  }
}

void LaneWorkers::work(detail::HostWorker& worker, const std::function<bool()>* between) {
  const auto keep_error = [this](const auto& body) {
    try {
      body();
    } catch (...) {
      failed_.store(true, std::memory_order_relaxed);
      const std::lock_guard lock(mutex_);
      if (!error_) {
        error_ = std::current_exception();
        throwing_ = cpu::take_throwing_lane();
      }
    }
  };
  const TraceSpan span(worker.context.tracer, TraceWhat::kRun, name_);
  set_running_kernel(name_);
  cpu::take_throwing_lane();  // what an earlier launch left
  keep_error([&] {
    while (!failed_.load(std::memory_order_relaxed)) {
      const std::uint64_t first = next_.fetch_add(chunk_, std::memory_order_relaxed);
      if (first >= groups_) break;
      (*function_)(worker, first, std::min(first + chunk_, groups_));
      chunks_done_.fetch_add(1, std::memory_order_relaxed);
      if (between != nullptr) (*between)();
    }
  });
  keep_error(
      [&] { Outbox::Filling(worker.outbox).close(); });  // also after an exception: what was sent was sent
  set_running_kernel(nullptr);
}

}  // namespace esker
