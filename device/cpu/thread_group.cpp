// The lanes of a group as one OS thread each.
#include <chrono>
#include <esker/device/cpu/launch.hpp>
#include <esker/device/cpu/thread_group.hpp>
#include <esker/device/error.hpp>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace esker::cpu {
namespace {

struct LaneCancelled {};

}  // namespace

void ThreadGroup::run(const LaunchShape& shape, std::uint64_t group, LaneFunction function, void* body) {
  shape_ = shape;
  group_ = group;
  function_ = function;
  body_ = body;
  const std::uint32_t lanes = shape.lanes_of(group);
  rendezvous_.begin(shape, group, lanes);
  lanes_ = std::vector<LaneState>(lanes);
  blocked_ = 0;
  changes_ = 1;
  cancelled_ = false;
  throwing_.reset();
  {
    std::vector<std::jthread> threads;
    threads.reserve(lanes);
    try {
      for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        threads.emplace_back([this, lane, who = who_am_i(), kernel = running_kernel()] {
          set_thread_name(who);
          set_running_kernel(kernel);
          run_lane(lane);
        });
      }
    } catch (const std::system_error& error) {
      const std::lock_guard lock(mutex_);  // lanes that have begun wait for those that cannot
      fail(std::make_exception_ptr(
          Error(Error::Kind::kOutOfMemory,
                "thread " + std::to_string(threads.size()) + " of the " + std::to_string(lanes) +
                    " lanes of a group cannot be had (" + error.code().message() +
                    "): launch smaller groups (--group-lanes) on fewer threads (--cpu-threads), or raise the "
                    "limits of address space and of processes (ulimit -v, -u)")));
    }
  }
  if (throwing_) note_throwing_lane(group_, *throwing_);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadGroup::run_lane(std::uint32_t lane) {
  std::exception_ptr error;
  try {
    GroupLane self(shape_, group_, lane, static_cast<std::uint32_t>(lanes_.size()), *this);
    function_(body_, self);
  } catch (const LaneCancelled&) {
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  if (error) {
    if (!error_) throwing_ = lane;
    fail(error);
  }
  if (lanes_[lane].awaits || rendezvous_.is_in_collective(lane)) --blocked_;  // it was cancelled there
  try {
    if (rendezvous_.leave(lane)) release();
  } catch (...) {
    fail(std::current_exception());
  }
  ++changes_;
  report_if_stuck();
}

void ThreadGroup::release() {
  ++changes_;
  for (const std::uint32_t lane : rendezvous_.released()) {
    lanes_[lane].released = true;
    --blocked_;
    lanes_[lane].wake.notify_one();
  }
}

Exchange ThreadGroup::exchange(std::uint32_t lane, std::uint32_t view, const Collective& what,
                               const Exchange& mine) {
  std::unique_lock lock(mutex_);
  if (cancelled_) throw LaneCancelled{};
  LaneState& state = lanes_[lane];
  state.released = false;
  try {
    const bool ended = rendezvous_.arrive(lane, view, what, mine);
    ++blocked_;
    if (ended) release();
  } catch (...) {
    fail(std::current_exception());
    throw LaneCancelled{};
  }
  ++changes_;
  report_if_stuck();
  state.wake.wait(lock, [&] { return state.released || cancelled_; });
  if (!state.released) throw LaneCancelled{};
  return rendezvous_.result(lane);
}

void ThreadGroup::await(std::uint32_t lane, const char* where, bool (*ready)(void*), void* context) {
  constexpr int kUnlockedPolls = 64;
  constexpr std::chrono::microseconds kSleep{50};
  for (int poll = 0; poll < kUnlockedPolls; ++poll) {
    if (ready(context)) return;
    std::this_thread::yield();
  }
  LaneState& state = lanes_[lane];
  std::unique_lock lock(mutex_);
  ++blocked_;
  ++changes_;
  state.awaits = true;
  rendezvous_.await(lane, where);
  while (!cancelled_) {
    // A lane that finds its predicate false while all are blocked finds it false for ever, unless another
    // lane goes on, which changes_ would tell.
    const std::uint64_t before = all_blocked() ? changes_ : 0;
    lock.unlock();
    const bool done = ready(context);
    if (!done) std::this_thread::sleep_for(kSleep);
    lock.lock();
    if (done) {
      --blocked_;
      ++changes_;
      state.awaits = false;
      rendezvous_.resume(lane);
      return;
    }
    state.polled_at = before;
    report_if_stuck();
  }
  throw LaneCancelled{};
}

void ThreadGroup::report_if_stuck() {
  if (cancelled_ || !all_blocked() || rendezvous_.live() == 0) return;
  for (const LaneState& state : lanes_) {
    if (state.awaits && state.polled_at != changes_) return;
  }
  fail(std::make_exception_ptr(std::logic_error(rendezvous_.misuse())));
}

void ThreadGroup::yield(std::uint32_t) { std::this_thread::yield(); }

std::byte* ThreadGroup::scratch(const void* key, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  return rendezvous_.scratch(key, bytes);
}

void ThreadGroup::fail(std::exception_ptr error) {
  if (!error_) error_ = std::move(error);
  cancelled_ = true;
  for (LaneState& state : lanes_) state.wake.notify_one();
}

}  // namespace esker::cpu
