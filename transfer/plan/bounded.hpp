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
/// That is a heuristic.
///
/// Graphs of up to kMostSearched operands are searched, too: over which operands are away when, the best
/// first. So `schedule.lower_bound` is the fewest startups with which operands fit in `device_bytes`,
/// whatever their order in memory, among schedules in which one leaves only to make room and nothing is moved
/// that nobody reads. gap() is what the order and the layout cost beyond that, or what 2000 sets of absences
/// and 500 layouts have not shown. Of larger graphs the bound is what they need without a limit.
/// `schedule.certificate` is empty.
///
/// Errors. Error{kOutOfMemory}: a kernel's operands alone do not fit, with its name, or no layout that was
///         tried does. Error{kTransfer}: a graph of several devices, or that changes operands in place.
ESKER_API BoundedSchedule schedule_bounded(const OperandGraph& graph, std::uint64_t device_bytes,
                                           std::uint64_t alignment = 128);

}  // namespace esker::transfer
