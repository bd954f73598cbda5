// Schedules in bounded device memory: operands leave a device and come back.
#pragma once

#include <cstdint>
#include <vector>

#include <esker/device/platform.hpp>
#include <esker/transfer/plan/arena.hpp>
#include <esker/transfer/plan/schedule.hpp>

namespace esker::transfer {

struct BoundedSchedule {
  std::vector<Transfer> transfers;  // with those of operands that leave and come back, at times that fit
  Schedule schedule;
  Layout layout;
};

/// A schedule whose device arena has at most `device_bytes`. A kernel that lacks room makes those operands
/// leave whose next use is farthest; what a device has written and the host lacks is downloaded first. Then
/// each transfer gets as many times as memory allows, and schedule_exact() or schedule_shared() fuses them.
///
/// A heuristic. `schedule.lower_bound` is fewest_startups_bounded() for up to 12 operands, and else what the
/// graph needs without a limit. `schedule.certificate` is empty.
///
/// Errors. Error{kOutOfMemory}: a kernel's operands alone do not fit, with its name, or no layout that was
///         tried does. Error{kTransfer}: a graph of several devices, or that changes operands in place.
ESKER_API BoundedSchedule schedule_bounded(const OperandGraph& graph, std::uint64_t device_bytes,
                                           std::uint64_t alignment = 128);

inline constexpr std::uint32_t kNoSchedule = ~std::uint32_t{0};

/// The fewest startups of a program whose operands on the device have at most so many bytes at any time, by
/// search over all sets that may be there before each kernel; kNoSchedule where a kernel does not fit. It
/// takes any operands that cross at one time in one direction for one startup, whatever the order in memory,
/// so it is a lower bound.
///
/// Errors. Error{kTransfer}: a graph of several devices, of more than 20 operands, or that changes operands
///         in place.
ESKER_API std::uint32_t fewest_startups_bounded(const OperandGraph& graph, std::uint64_t device_bytes,
                                                std::uint64_t alignment = 128);

}  // namespace esker::transfer
