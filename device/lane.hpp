// A lane's place in a launch.
#pragma once

#include <cstdint>
#include <esker/device/platform.hpp>

namespace esker {

/// How many lanes a kernel has and how they are cut into groups and waves.
struct LaunchShape {
  std::uint64_t lanes = 0;
  std::uint32_t group_lanes = 256;
  std::uint32_t wave_lanes = 32;  // CPU back end only: hardware has its own, 32 or 64

  ESKER_HD constexpr std::uint64_t groups() const { return lanes == 0 ? 0 : (lanes - 1) / group_lanes + 1; }
  /// Lanes that group `group` has: the last one of a launch may be short.
  ESKER_HD constexpr std::uint32_t lanes_of(std::uint64_t group) const {
    const std::uint64_t left = lanes - group * group_lanes;
    return left < group_lanes ? static_cast<std::uint32_t>(left) : group_lanes;
  }
};

/// A few integers: on the CPU's plain loop the compiler keeps them in registers.
class Lane {
 public:
  ESKER_HD constexpr Lane(const LaunchShape& shape, std::uint64_t group, std::uint32_t lane,
                          std::uint32_t group_lanes)
      : global_id_{group * shape.group_lanes + lane},
        group_id_{group},
        lanes_{shape.lanes},
        lane_{lane},
        group_lanes_{group_lanes} {}

  /// Lane `id` of a launch.
  ESKER_HD constexpr Lane(const LaunchShape& shape, std::uint64_t id)
      : global_id_{id},
        group_id_{id / shape.group_lanes},
        lanes_{shape.lanes},
        lane_{static_cast<std::uint32_t>(id % shape.group_lanes)},
        group_lanes_{shape.lanes_of(group_id_)} {}

  ESKER_HD constexpr std::uint64_t global_id() const { return global_id_; }
  ESKER_HD constexpr std::uint64_t group_id() const { return group_id_; }
  /// Lanes in the whole launch.
  ESKER_HD constexpr std::uint64_t lanes() const { return lanes_; }
  /// Position in the group, < group_lanes().
  ESKER_HD constexpr std::uint32_t lane() const { return lane_; }
  /// Lanes that this group was started with.
  ESKER_HD constexpr std::uint32_t group_lanes() const { return group_lanes_; }

  /// Gives way once, while the lane waits for something outside its group. The caller escalates.
  ESKER_HD static void yield() { detail::give_way(); }
  /// The same for a lane that may have diverged from others of its wave: it does not sleep. On CUDA one that
  /// sleeps is not woken while others of its wave go round a loop, which may be waiting for it.
  ESKER_HD static void yield_awake() { detail::give_way_awake(); }

  /// A clock that all lanes of a device share, and the host's threads on the CPU: nanoseconds since some
  /// time. It may move in steps of a microsecond.
  ESKER_HD static std::uint64_t clock_ns() { return detail::clock_ns(); }
  /// The fastest and finest clock: ticks of the processor that runs the lane, at whatever rate.
  ESKER_HD static std::uint64_t clock_ticks() { return detail::clock_ticks(); }

 private:
  std::uint64_t global_id_;
  std::uint64_t group_id_;
  std::uint64_t lanes_;
  std::uint32_t lane_;
  std::uint32_t group_lanes_;
};

}  // namespace esker
