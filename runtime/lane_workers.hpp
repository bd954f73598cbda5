// The host threads that run lanes on the CPU back end.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <esker/device/cpu/launch.hpp>
#include <esker/runtime/host_worker.hpp>

namespace esker {

/// The calling thread and `threads` - 1 others, which sleep between launches.
///
/// Contract. The thread that has made it calls run(); the counter is for any thread.
class LaneWorkers {
 public:
  using Function = detail::GroupFunction;

  LaneWorkers(std::uint32_t threads, const detail::KernelContext& context, const std::string& thread_name);
  ~LaneWorkers();
  LaneWorkers(const LaneWorkers&) = delete;
  LaneWorkers& operator=(const LaneWorkers&) = delete;

  /// Runs `function` over groups [0, groups) in chunks and publishes what lanes have sent. `between` runs
  /// on the calling thread after each of its chunks, and while other workers have theirs to end; it says
  /// whether something has moved. A single group is the calling thread's. Throws the first exception of a
  /// lane; groups that have not begun then do not run.
  void run(std::uint64_t groups, const Function& function, const std::function<bool()>& between,
           const char* name = "kernel");

  /// Of the launch that has thrown last: the lane that threw; nothing where none did.
  const std::optional<cpu::ThrowingLane>& throwing_lane() const { return throwing_; }

  /// Chunks finished so far, for the hang report.
  std::uint64_t chunks_done() const { return chunks_done_.load(std::memory_order_relaxed); }

 private:
  void stop();
  void work(detail::HostWorker& worker, const std::function<bool()>* between);
  void thread_main(std::uint32_t index);

  std::vector<std::unique_ptr<detail::HostWorker>> workers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t launch_ = 0;                   // guarded by mutex_
  std::uint32_t running_ = 0;                  // guarded by mutex_: other threads in this launch
  bool stopping_ = false;                      // guarded by mutex_
  std::exception_ptr error_;                   // guarded by mutex_
  std::optional<cpu::ThrowingLane> throwing_;  // guarded by mutex_ until run() throws
  const Function* function_ = nullptr;
  const char* name_ = "";  // of the kernel, for traces
  std::uint64_t groups_ = 0;
  std::uint64_t chunk_ = 1;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<bool> failed_{false};
  std::atomic<std::uint64_t> chunks_done_{0};
  std::vector<std::jthread> threads_;
};

}  // namespace esker
