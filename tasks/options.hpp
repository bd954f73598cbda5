// What a user says about a run, and what it says afterwards.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <esker/device/atomic.hpp>
#include <esker/tasks/watch.hpp>

namespace esker::tasks {

/// Ends runs from outside: any thread asks, and every run that has a copy of this token ends within a
/// millisecond or so, and throws Error{kTask}.
class StopToken {
 public:
  void request_stop() const { word_->store_relaxed(1); }
  bool stop_requested() const { return word_->load_relaxed() != 0; }
  /// For domains on the host, which look at it themselves. It lives while a copy of the token does.
  const SystemAtomic<std::uint32_t>* word() const { return word_.get(); }

 private:
  std::shared_ptr<SystemAtomic<std::uint32_t>> word_ = std::make_shared<SystemAtomic<std::uint32_t>>(0);
};

struct Options {
  std::uint64_t memory_bytes = std::uint64_t{64}
                               << 20;  // of the device, for waiting tasks, beside scratchpad
  std::uint32_t domains = 0;           // at most; 0: as many as the device holds
  StopToken stop;
  bool watch = false;       // keep spans of domains, and counts of channels and levels: Report::watched
  bool time_tasks = false;  // Report::in_tasks: two looks at a clock a batch
  // When no domain has begun or ended a batch for so long, on any PE of the run, on_hang gets a report of who
  // does what and waits for whom, and the run goes on. It is called on a thread of the library's, or on each
  // PE of a run over PEs on the one that is in run(). 0: never. Empty: to standard error. What it throws ends
  // the run, and run() throws it; on other PEs the run was stopped.
  std::chrono::milliseconds hang_after{0};
  std::function<void(const std::string& report)> on_hang;
  void* local = nullptr;  // in the device's memory: what tasks find by task.local<T>(), on each PE its own
};

/// Of one run; sums over domains.
struct Report {
  std::chrono::nanoseconds time{};     // from the launch to its end
  std::uint32_t domains = 0;           // waves or threads
  std::uint64_t sum = 0;               // of what tasks have given to add()
  std::uint64_t tasks = 0;             // calls of tasks' functions
  std::uint64_t batches = 0;           // of tasks that ran together ...
  std::uint64_t full_batches = 0;      // ... of them, with a task a lane
  std::uint64_t resumed = 0;           // batches of continuations
  std::uint64_t given = 0;             // bundles of tasks that went to another domain
  std::uint64_t suspended = 0;         // stacks that were left until given tasks were back
  std::uint64_t spilled = 0;           // levels that went from scratchpad to memory
  std::uint64_t waits = 0;             // times that a domain had nothing
  std::uint64_t sent = 0;              // parcels of tasks that went to another PE ...
  std::uint64_t received = 0;          // ... and that came from one
  std::chrono::nanoseconds idle{};     // time without work, and
  std::chrono::nanoseconds present{};  // time from a domain's start to its end: sums over domains
  // Of it in tasks' functions and continuations, those of a whole wave until what they have stored is there:
  // with Options::time_tasks.
  std::chrono::nanoseconds in_tasks{};
  // Of memory_bytes, those that were ever in use: a little more than at a time at most.
  std::uint64_t peak_memory_bytes = 0;
  Watched watched;  // empty without Options::watch
};

}  // namespace esker::tasks
