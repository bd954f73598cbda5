// The thread that runs the network engine: one of its own, or the user's during its calls.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <esker/net/network.hpp>
#include <esker/net/transport.hpp>

namespace esker {

/// State    connected -> running -> stopped.
/// Contract connect() runs on the owning thread, which then makes every call to the transport: what MPI
///          asks for where it allows one thread alone. Where the transport is
///          for any thread, and no GPU has a part in it, a thread that waits steps in the owner's place: to
///          wake it, and to be woken, takes longer than what is waited for.
/// Ordering [step] a step happens before the next one, whichever thread makes it.
class NetworkOwner {
 public:
  using Connect = std::function<std::unique_ptr<Transport>()>;
  /// Called by the owner a few times a second, between steps.
  using Housekeeping = std::function<void()>;

  /// With `own_thread`, starts it and waits until it has connected. Rethrows what connect() throws.
  NetworkOwner(bool own_thread, Connect connect, std::string name);
  /// Requires stopped, or never run.
  ~NetworkOwner();
  NetworkOwner(const NetworkOwner&) = delete;
  NetworkOwner& operator=(const NetworkOwner&) = delete;

  Transport& transport() const { return *transport_; }
  bool has_own_thread() const { return own_thread_; }

  /// `check_owner`: called by the owner's thread from time to time while another one makes the steps.
  void run(Network& network, Housekeeping housekeeping, Housekeeping check_owner);
  /// One step on the user's thread where that is the owner; nothing otherwise. True if something moved.
  bool step_if_caller() { return !own_thread_ && network_ != nullptr && step(); }
  /// One step in the owner's place, if its thread is not inside one. Requires is_lent(). True if something
  /// moved.
  bool try_step_for_owner();
  /// The same for whichever thread makes the owner's steps just now, in its check before it sleeps.
  bool step_once_more() { return own_thread_ ? try_step_for_owner() : step_if_caller(); }
  /// The user's thread may make the steps that it waits for.
  bool is_lent() const { return is_lent_; }
  /// The user's thread makes steps all the time, from now on or no longer: the owner's thread leaves them to
  /// it.
  void set_driven(bool is_driven) { is_driven_.store(is_driven, std::memory_order_relaxed); }
  /// Steps of the owner so far: when they stop growing, it is stuck inside one.
  std::uint64_t steps() const { return steps_.load(std::memory_order_relaxed); }

  /// Ends the transport: with its peers, or (not orderly) after a second for what is still to be told.
  /// Throws what went wrong.
  void stop(bool orderly);

 private:
  void thread_main();
  bool step();
  /// False: another thread is inside one. `then` is part of the step.
  template <class Then>
  bool try_step(bool* moved, Then then);
  void close(bool orderly);
  void leave() const noexcept;  // where no network has run

  const bool own_thread_;
  const Connect connect_;
  const std::string name_;
  std::unique_ptr<Transport> transport_;
  Network* network_ = nullptr;
  Housekeeping housekeeping_, check_owner_;
  bool is_lent_ = false;
  std::atomic<bool> is_driven_{false};
  std::atomic<bool> is_inside_{false};  // a step, some thread; [step]
  std::chrono::steady_clock::time_point next_housekeeping_;
  std::uint32_t steps_until_clock_ = 0;
  std::atomic<std::uint64_t> steps_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  bool connected_ = false;    // guarded by mutex_
  bool may_run_ = false;      // guarded by mutex_
  std::exception_ptr error_;  // guarded by mutex_ until it is stopped
  std::atomic<bool> stopping_{false};
  bool orderly_ = true;  // written before stopping_
  bool stopped_ = false;
  std::jthread thread_;
};

}  // namespace esker
