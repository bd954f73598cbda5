// Both conditions, in whole numbers.
#include <esker/transfer/batch/edf.hpp>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include <boost/multiprecision/cpp_int.hpp>

#include <esker/error.hpp>

#include <fmt/format.h>

namespace esker::transfer {

namespace {

using Wide = boost::multiprecision::cpp_int;

void check(std::span<const SporadicTask> tasks) {
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].cost == 0 || tasks[i].period == 0) {
      throw Error(Error::Kind::kTransfer,
                  fmt::format("test_edf: task {} has cost {} and period {}: neither is 0", i, tasks[i].cost,
                              tasks[i].period));
    }
  }
}

}  // namespace

bool fits_utilisation(std::span<const SporadicTask> tasks) {
  check(tasks);
  Wide used = 0, whole = 1;  // a fraction
  for (const SporadicTask& task : tasks) {
    used = used * task.period + whole * task.cost;
    whole *= task.period;
    const Wide common = boost::multiprecision::gcd(used, whole);
    used /= common;
    whole /= common;
    if (used > whole) return false;
  }
  return true;
}

EdfResult test_edf(std::span<const SporadicTask> tasks) {
  EdfResult result;
  if (!fits_utilisation(tasks)) {
    double used = 0;
    for (const SporadicTask& task : tasks)
      used += static_cast<double>(task.cost) / static_cast<double>(task.period);
    result.is_feasible = false;
    result.is_overloaded = true;
    result.reason = fmt::format("the tasks need {:.4f} of the time", used);
    return result;
  }
  std::vector<std::size_t> order(tasks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return tasks[a].period < tasks[b].period; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const SporadicTask& task = tasks[order[i]];
    const std::uint64_t first = tasks[order[0]].period;
    if (task.period <= first + 1) continue;
    // The right side changes at 1 more than a multiple of a period; the left side is least there.
    std::vector<std::uint64_t> intervals{first + 1};
    for (std::size_t j = 0; j < i; ++j) {
      const std::uint64_t period = tasks[order[j]].period;
      for (std::uint64_t k = 1; k <= (task.period - 2) / period; ++k) {
        if (k * period + 1 > first) intervals.push_back(k * period + 1);
      }
    }
    std::sort(intervals.begin(), intervals.end());
    for (const std::uint64_t interval : intervals) {
      Wide needed = task.cost;
      for (std::size_t j = 0; j < i; ++j) {
        needed += Wide{(interval - 1) / tasks[order[j]].period} * tasks[order[j]].cost;
      }
      if (needed <= interval) continue;
      result.is_feasible = false;
      result.task = order[i];
      result.interval = interval;
      result.needed = needed > ~std::uint64_t{0} ? ~std::uint64_t{0} : static_cast<std::uint64_t>(needed);
      result.reason = fmt::format("task {}, just begun, and shorter ones need {} of an interval of {}",
                                  order[i], result.needed, interval);
      return result;
    }
  }
  return result;
}

}  // namespace esker::transfer
