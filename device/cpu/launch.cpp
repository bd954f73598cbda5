// Kernels on the CPU.
#include <esker/device/cpu/fiber_group.hpp>
#include <esker/device/cpu/launch.hpp>
#include <esker/device/cpu/thread_group.hpp>
#include <utility>

namespace esker::cpu {
namespace {

/// Stacks are dear: a thread keeps its engine. A launch inside a launch finds none and makes its own.
thread_local std::unique_ptr<FiberGroup> kept_engine;

thread_local std::optional<ThrowingLane> throwing_lane;

}  // namespace

void note_throwing_lane(std::uint64_t group, std::uint32_t lane) noexcept {
  throwing_lane = ThrowingLane{group, lane};
}

std::optional<ThrowingLane> take_throwing_lane() noexcept {
  return std::exchange(throwing_lane, std::nullopt);
}

void run_group_lanes(const LaunchShape& shape, std::uint64_t first, std::uint64_t last,
                     GroupExecution execution, void (*function)(void* body, GroupLane& lane), void* body) {
  if (execution == GroupExecution::kThreads) {
    ThreadGroup engine;
    for (std::uint64_t group = first; group < last; ++group) engine.run(shape, group, function, body);
    return;
  }
  std::unique_ptr<FiberGroup> engine = std::exchange(kept_engine, nullptr);
  if (!engine) engine = std::make_unique<FiberGroup>();
  for (std::uint64_t group = first; group < last; ++group) engine->run(shape, group, function, body);
  kept_engine = std::move(engine);  // not reached by an exception: that engine is dropped
}

}  // namespace esker::cpu
