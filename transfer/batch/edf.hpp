// Whether batches that recur meet their deadlines: the test of Jeffay, Stanat and Martel.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <esker/device/platform.hpp>

namespace esker::transfer {

/// Jobs that recur: each takes up to `cost`, has to end within `period` of its release, and the next is
/// released no sooner than `period` after it. In whatever unit of time all of them have.
struct SporadicTask {
  std::uint64_t cost = 0;
  std::uint64_t period = 0;
};

struct EdfResult {
  bool is_feasible = true;
  bool is_overloaded = false;  // condition 1 fails: together they need more time than there is
  /// Else condition 2 fails here: this task, just begun, keeps the shorter ones from `interval` of time.
  std::size_t task = 0;
  std::uint64_t interval = 0, needed = 0;
  std::string reason;  // in words; "" where it is feasible
};

/// Earliest deadline first without preemption and without waiting while there is work (Jeffay, Stanat and
/// Martel, RTSS 1991, theorem 4.3): with the tasks by period, all deadlines are met if and only if
///
///   1.  sum of cost / period  <=  1, and
///   2.  for each task i but the first, and each L between the first period and its own, both exclusive:
///       L >= cost_i + sum over j < i of floor((L - 1) / period_j) * cost_j.
///
/// Exact for sporadic tasks in whole units of time: a task may come later than its period, so no set is saved
/// by when its tasks happen to start. A set of periodic tasks with given phases may meet its deadlines though
/// this says no; with all phases possible it is exact for them too. Computed in whole numbers.
///
/// Takes time in proportion to the number of releases of other tasks within the longest period, or within
/// cost_i / (1 - what the shorter tasks use) where that is less.
///
/// Errors. Error{kTransfer}: a period or a cost of 0, by the task's place.
ESKER_API EdfResult test_edf(std::span<const SporadicTask> tasks);

/// Condition 1 alone: a processor that could be taken away in the middle of a job.
ESKER_API bool fits_utilisation(std::span<const SporadicTask> tasks);

}  // namespace esker::transfer
