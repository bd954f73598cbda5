// Repeated timing: median and spread of a rate.
#include <esker/bench/harness/measure.hpp>

#include <algorithm>
#include <utility>

namespace esker::bench {

Rate summarise(std::vector<double> rates) {
  std::sort(rates.begin(), rates.end());
  const std::size_t half = rates.size() / 2;
  const double median = rates.size() % 2 ? rates[half] : (rates[half - 1] + rates[half]) / 2;
  return {median, rates.front(), rates.back()};
}

namespace {

std::uint64_t units_of_one_repeat(const Effort& effort, std::uint64_t first_units, const Run& run) {
  if (effort.units > 0) return effort.units;
  std::uint64_t units = first_units;
  double took = run(units);
  while (took < effort.seconds / 4) took = run(units *= 2);
  const double wanted = static_cast<double>(units) * effort.seconds / took;
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(wanted));
}

}  // namespace

std::vector<Rate> measure(const Effort& effort, std::uint64_t first_units, const std::vector<Run>& runs) {
  std::vector<std::uint64_t> units;
  for (const Run& run : runs) units.push_back(units_of_one_repeat(effort, first_units, run));
  std::vector<std::vector<double>> rates(runs.size());
  for (std::uint32_t repeat = 0; repeat < effort.repeats; ++repeat) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      rates[i].push_back(static_cast<double>(units[i]) / runs[i](units[i]));
    }
  }
  std::vector<Rate> summaries;
  for (auto& of_one : rates) summaries.push_back(summarise(std::move(of_one)));
  return summaries;
}

}  // namespace esker::bench
