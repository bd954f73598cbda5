// Kernels on the CPU: a plain loop, fibers, or one OS thread a lane.
#pragma once

#include <cstdint>
#include <esker/device/group.hpp>
#include <esker/device/lane.hpp>
#include <optional>
#include <type_traits>

namespace esker {

/// How lanes that work together run on the CPU. kThreads is for tests: ThreadSanitizer sees real races.
enum class GroupExecution { kFibers, kThreads };

namespace cpu {

/// The lane whose exception run_groups() has thrown on this thread.
struct ThrowingLane {
  std::uint64_t group;
  std::uint32_t lane;
};
/// Whoever runs lanes says it.
ESKER_API void note_throwing_lane(std::uint64_t group, std::uint32_t lane) noexcept;
/// The last one noted, once; nothing where no lane threw, but the launch was a mistake.
std::optional<ThrowingLane> take_throwing_lane() noexcept;

#if defined(ESKER_ON_CPU)

/// Runs groups [first, last) one after the other. Not a template: `function` is the body, type-erased.
ESKER_API void run_group_lanes(const LaunchShape& shape, std::uint64_t first, std::uint64_t last,
                               GroupExecution execution, void (*function)(void* body, GroupLane& lane),
                               void* body);

/// Runs groups [first, last) of a launch on the calling thread and returns when they are done. Any
/// number of threads may run groups of one launch at a time.
///
/// A body that can be called with a Lane runs as a plain loop; one that takes a GroupLane& runs with
/// all lanes of a group in flight. What a lane throws is thrown here, after the other lanes of its
/// group have ended; groups after it do not run.
template <class Body>
void run_groups(const LaunchShape& shape, std::uint64_t first, std::uint64_t last, GroupExecution execution,
                Body&& body) {
  using Kernel = std::remove_reference_t<Body>;
  if constexpr (std::is_invocable_v<Kernel&, Lane>) {
    const LaunchShape own = shape;  // what a lane stores cannot be thought to change it
    std::uint64_t group = first;
    std::uint32_t lane = 0;
    try {
      for (; group < last; ++group) {
        const std::uint32_t lanes = own.lanes_of(group);
        for (lane = 0; lane < lanes; ++lane) body(Lane(own, group, lane, lanes));
      }
    } catch (...) {
      note_throwing_lane(group, lane);
      throw;
    }
  } else {
    static_assert(std::is_invocable_v<Kernel&, GroupLane&>, "a kernel takes a Lane or a GroupLane&");
    run_group_lanes(
        shape, first, last, execution,
        [](void* kernel, GroupLane& lane) { (*static_cast<Kernel*>(kernel))(lane); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }
}

/// Runs the whole launch on the calling thread.
template <class Body>
void launch(const LaunchShape& shape, GroupExecution execution, Body&& body) {
  run_groups(shape, 0, shape.groups(), execution, body);
}

#endif

}  // namespace cpu

}  // namespace esker
