// The thread that starts progress kernels and notices when kernels have ended.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include <esker/device/error.hpp>
#include <esker/net/gpu/host_words.hpp>

namespace esker::gpu {

struct ProgressRequest {
  std::uint64_t number;  // of the progress kernel: 1, 2, ...
  std::size_t handler;   // whose messages it applies too: of the HandlerRegistry
  bool beside_kernel;    // a kernel of the user's may run
};

/// What the starter does with the device. All calls come from its thread, and may wait for the device.
/// Errors. Error{kDevice}.
class ProgressLauncher {
 public:
  virtual ~ProgressLauncher() = default;
  virtual void start(const ProgressRequest& request) = 0;
  /// Whether a kernel of the user's still runs. Throws if one has failed.
  virtual bool is_kernel_running() = 0;
  /// Throws if a progress kernel has failed.
  virtual void check_progress_kernel() = 0;
};

/// A thread of its own, since what it asks of the device may wait for a kernel that waits for the network's
/// owner, while another thread of the program is in a call that waits for the device, such as freeing memory.
///
/// Contract. The network's owner calls ask() once the progress kernel asked for before has ended. The user's
///           thread calls note_launch(), any thread the others.
/// Ordering. [asked] what ask() stores  happens before  the starter reads it
/// Progress. It sleeps; for a short while after a request, or expect(), it only yields, since waking takes
///           longer than a progress kernel.
/// Errors.   What the launcher throws ends the thread. check() passes it on.
class ProgressStarter {
 public:
  ProgressStarter(ProgressLauncher& launcher, const HostWords& host);
  ~ProgressStarter() { stop(); }
  ProgressStarter(const ProgressStarter&) = delete;
  ProgressStarter& operator=(const ProgressStarter&) = delete;

  void ask(std::uint64_t number, std::size_t handler);
  /// Progress kernels will be wanted soon.
  void expect();
  /// Throws what the thread has failed with.
  void check();
  /// Whether kernels of the user's have ended since the last call.
  bool take_kernels_ended() { return kernels_ended_.exchange(false, std::memory_order_acq_rel); }
  /// A kernel of the user's has been started.
  void note_launch();
  /// Ends the thread.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;

  void run(const std::stop_token& stopping);
  std::uint64_t wait_for_request(Clock::time_point now, const std::stop_token& stopping);
  void look_for_the_end();

  ProgressLauncher& launcher_;
  const HostWords& host_;

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::size_t handler_ = 0;                // of the last request
  std::atomic<std::uint64_t> asked_{0};    // its number; changes under mutex_; [asked]
  std::atomic<bool> is_expecting_{false};  // is raised under mutex_
  std::optional<Error> failure_;           // guarded by mutex_
  std::atomic<bool> has_failed_{false};
  std::atomic<std::uint64_t> launches_{0};
  std::atomic<bool> kernels_ended_{false};

  // The thread's.
  std::uint64_t started_ = 0;         // number of the last progress kernel
  std::uint64_t launches_ended_ = 0;  // of launches_
  Clock::time_point awake_until_;

  std::jthread thread_;
};

}  // namespace esker::gpu
