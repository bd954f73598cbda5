// Both conditions, in whole numbers.
#include <esker/transfer/batch/edf.hpp>

#include <algorithm>
#include <numeric>
#include <span>
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

/// Of the time, what some tasks use.
struct Utilisation {
  Wide used = 0, whole = 1;  // a fraction

  void add(const SporadicTask& task) {
    used = used * task.period + whole * task.cost;
    whole *= task.period;
    const Wide common = boost::multiprecision::gcd(used, whole);
    used /= common;
    whole /= common;
  }
};

/// Beyond it an interval has time for the task and for those before it, which leave some of the time; and it
/// is shorter than the task's period.
std::uint64_t longest_interval(const SporadicTask& task, const Utilisation& before) {
  const Wide longest = task.period - 1;
  const Wide enough = task.cost * before.whole / (before.whole - before.used) + 1;
  return static_cast<std::uint64_t>(std::min(enough, longest));
}

}  // namespace

bool fits_utilisation(std::span<const SporadicTask> tasks) {
  check(tasks);
  Utilisation all;
  for (const SporadicTask& task : tasks) {
    all.add(task);
    if (all.used > all.whole) return false;
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
  Utilisation before;  // what is left to task i is at least its own, so not nothing
  for (std::size_t i = 1; i < order.size(); ++i) {
    before.add(tasks[order[i - 1]]);
    const SporadicTask& task = tasks[order[i]];
    const std::uint64_t first = tasks[order[0]].period;
    if (task.period - 1 <= first) continue;
    const std::uint64_t longest = longest_interval(task, before);
    // What is needed grows at 1 more than a multiple of a period: the interval is shortest for it there.
    for (std::uint64_t interval = first + 1; interval <= longest;) {
      Wide needed = task.cost;
      std::uint64_t next = ~std::uint64_t{0};
      for (std::size_t j = 0; j < i; ++j) {
        const std::uint64_t period = tasks[order[j]].period, past = (interval - 1) / period * period;
        needed += Wide{(interval - 1) / period} * tasks[order[j]].cost;
        if (past < ~std::uint64_t{0} - period) next = std::min(next, past + period + 1);
      }
      if (needed <= interval) {
        if (next == ~std::uint64_t{0}) break;
        interval = next;
        continue;
      }
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
