// Sides of a comparison, which are verified and then take turns.
#include "turns.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

namespace esker::bench {

Outcome timed(const std::function<std::uint64_t()>& run) {
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t result = run();
  return {result, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
}

namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Outcome verified(const std::string& problem, std::uint64_t expected, const Side& side) {
  const Outcome outcome = side.run();
  if (outcome.result != expected)
    throw std::runtime_error(
        fmt::format("{} is {}, and {} by {}", problem, expected, outcome.result, side.name));
  return outcome;
}

}  // namespace

nlohmann::json take_turns(const std::string& problem, std::uint64_t expected, double work,
                          const std::vector<Side>& sides, const Effort& effort, const std::string& unit) {
  for (const Side& side : sides) (void)verified(problem, expected, side);
  std::vector<std::vector<double>> seconds(sides.size());
  for (std::uint64_t i = 0; i < effort.repeats; ++i) {
    for (std::size_t turn = 0; turn < sides.size(); ++turn) {
      const std::size_t s = (turn + i) % sides.size();
      if (std::accumulate(seconds[s].begin(), seconds[s].end(), 0.0) > effort.seconds) continue;
      seconds[s].push_back(verified(problem, expected, sides[s]).seconds);
    }
  }
  nlohmann::json report = {{"problem", problem}, {"result", expected}, {unit, work}};
  for (std::size_t s = 0; s < sides.size(); ++s) {
    const auto [lowest, highest] = std::minmax_element(seconds[s].begin(), seconds[s].end());
    const double middle = median(seconds[s]);
    nlohmann::json side = {{"name", sides[s].name}, {"seconds", seconds[s]},
                           {"median", middle},      {"lowest", *lowest},
                           {"highest", *highest},   {unit + "_per_s", work / middle}};
    if (sides[s].facts) side.update(sides[s].facts());
    report["sides"].push_back(side);
    fmt::print("{:12} {:28} {:10.6f} s ({:.6f} to {:.6f}), {:10.2f} M {}/s\n", problem, sides[s].name, middle,
               *lowest, *highest, work / middle / 1e6, unit);
  }
  return report;
}

double median_of(const nlohmann::json& turns, const std::string& side) {
  for (const auto& one : turns["sides"]) {
    if (one["name"] == side) return one["median"];
  }
  throw std::runtime_error(fmt::format("there is no side '{}'", side));
}

}  // namespace esker::bench
