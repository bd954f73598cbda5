// The lanes of a group as fibers of one OS thread.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <esker/device/cpu/fiber_group.hpp>
#include <esker/device/cpu/launch.hpp>
#include <stdexcept>
#include <thread>
#include <utility>

namespace esker::cpu {
namespace {

struct LaneCancelled {};

}  // namespace

void FiberGroup::run(const LaunchShape& shape, std::uint64_t group, LaneFunction function, void* body) {
  shape_ = shape;
  group_ = group;
  function_ = function;
  body_ = body;
  const std::uint32_t lanes = shape.lanes_of(group);
  rendezvous_.begin(shape, group, lanes);
  lanes_.assign(lanes, LaneState{});
  next_lane_ = running_ = idle_polls_ = 0;
  cancelled_ = false;

  while (running_ > 0 || may_begin()) {
    if (!ready_.empty()) {
      const std::uint32_t lane = ready_.front();
      ready_.pop_front();
      lanes_[lane].worker->fiber.resume();
    } else if (may_begin()) {
      if (idle_.empty()) {
        workers_.push_back(std::make_unique<Worker>(*this));
        idle_.push_back(workers_.back().get());
      }
      Worker* worker = idle_.back();
      idle_.pop_back();
      worker->fiber.resume();
    } else {
      poll();
    }
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void FiberGroup::Worker::work(void* self) {
  auto& worker = *static_cast<Worker*>(self);
  FiberGroup& group = worker.group;
  for (;;) {
    // Lanes that others have just been set free go first: they keep stacks.
    do {
      const std::uint32_t lane = group.next_lane_++;
      group.lanes_[lane].worker = &worker;
      group.run_lane(lane);
    } while (group.ready_.empty() && group.may_begin());
    group.idle_.push_back(&worker);
    worker.fiber.suspend();
  }
}

void FiberGroup::run_lane(std::uint32_t lane) {
  ++running_;
  try {
    GroupLane self(shape_, group_, lane, rendezvous_.lanes(), *this);
    function_(body_, self);
  } catch (const LaneCancelled&) {
  } catch (...) {
    if (!error_) note_throwing_lane(group_, lane);
    fail(std::current_exception());
  }
  try {
    if (rendezvous_.leave(lane)) release_others(lane);
  } catch (...) {
    fail(std::current_exception());
  }
  --running_;
  idle_polls_ = 0;
}

void FiberGroup::release_others(std::uint32_t lane) {
  idle_polls_ = 0;
  if (cancelled_) return;  // fail() has set everyone free
  for (const std::uint32_t other : rendezvous_.released()) {
    if (other != lane) ready_.push_back(other);
  }
}

Exchange FiberGroup::exchange(std::uint32_t lane, std::uint32_t view, const Collective& what,
                              const Exchange& mine) {
  if (cancelled_) throw LaneCancelled{};
  bool ended = false;
  try {
    ended = rendezvous_.arrive(lane, view, what, mine);
  } catch (...) {
    fail(std::current_exception());
    throw LaneCancelled{};
  }
  if (ended) {
    release_others(lane);
  } else {
    wait(lane);
    if (cancelled_) throw LaneCancelled{};
  }
  return rendezvous_.result(lane);
}

void FiberGroup::await(std::uint32_t lane, const char* where, bool (*ready)(void*), void* context) {
  if (ready(context)) return;
  if (cancelled_) throw LaneCancelled{};
  lanes_[lane].ready = ready;
  lanes_[lane].context = context;
  rendezvous_.await(lane, where);
  waiting_.push_back(lane);
  wait(lane);
  rendezvous_.resume(lane);
  if (cancelled_) throw LaneCancelled{};
}

// No cancellation point: the lane may hold a ticket that the outside waits for.
void FiberGroup::yield(std::uint32_t lane) {
  lanes_[lane].ready = nullptr;
  waiting_.push_back(lane);
  wait(lane);
}

void FiberGroup::poll() {
  bool only_yields = true;
  const auto can_go_on = [&](std::uint32_t lane) {
    LaneState& state = lanes_[lane];
    if (state.ready == nullptr) return true;
    const bool ready = state.ready(state.context);
    only_yields = only_yields && !ready;
    return ready;
  };
  const auto rest = std::stable_partition(waiting_.begin(), waiting_.end(), can_go_on);
  ready_.insert(ready_.end(), waiting_.begin(), rest);
  waiting_.erase(waiting_.begin(), rest);
  if (ready_.empty()) {
    fail(std::make_exception_ptr(std::logic_error(rendezvous_.misuse())));
  } else if (only_yields) {
    back_off();
  } else {
    idle_polls_ = 0;
  }
}

void FiberGroup::back_off() {
  constexpr std::uint32_t kYields = 32;
  constexpr std::chrono::microseconds kSleep{50};
  if (++idle_polls_ <= kYields) {
    sched_yield();
  } else {
    std::this_thread::sleep_for(kSleep);
  }
}

void FiberGroup::fail(std::exception_ptr error) {
  if (!error_) error_ = std::move(error);
  if (cancelled_) return;
  cancelled_ = true;
  ready_.insert(ready_.end(), waiting_.begin(), waiting_.end());
  waiting_.clear();
  for (std::uint32_t lane = 0; lane < next_lane_; ++lane) {
    if (rendezvous_.is_in_collective(lane)) ready_.push_back(lane);
  }
}

}  // namespace esker::cpu
