// Sides that take turns.
#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "../harness/measure.hpp"
#include "bench.hpp"

namespace esker::bench {

std::vector<Microseconds> take_turns(const TransferBench& bench, const std::vector<TransferSide>& sides,
                                     std::uint32_t calls) {
  std::vector<std::vector<double>> times(sides.size());
  for (std::uint32_t round = 0; round <= bench.repeats; ++round) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
      const auto begin = std::chrono::steady_clock::now();
      for (std::uint32_t call = 0; call < calls; ++call) sides[i].call();
      const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
      if (round != 0) times[i].push_back(time.count() / calls);
    }
  }
  std::vector<Microseconds> results;
  for (std::vector<double>& all : times) {
    const Rate time = summarise(std::move(all));
    results.push_back({time.median, time.lowest, time.highest});
  }
  return results;
}

nlohmann::json to_json(const Microseconds& time) {
  return {{"median_us", time.median}, {"min_us", time.least}, {"max_us", time.most}};
}

nlohmann::json print_turns(const TransferBench& bench, const std::string& what,
                           const std::vector<TransferSide>& sides, std::uint32_t calls) {
  const std::vector<Microseconds> times = take_turns(bench, sides, calls);
  nlohmann::json result;
  fmt::print("{:32}", what);
  for (std::size_t i = 0; i < sides.size(); ++i) {
    fmt::print("  {} {:.1f} us ({:.1f} to {:.1f})", sides[i].name, times[i].median, times[i].least,
               times[i].most);
    result[sides[i].name] = to_json(times[i]);
  }
  const double ratio = times.front().median / times.back().median;
  fmt::print("  {:.2f}x\n", ratio);
  std::fflush(stdout);
  result["first_over_last"] = ratio;
  return result;
}

std::uint32_t calls_for(const TransferBench& bench, std::uint64_t floats) {
  const std::uint64_t calls = (bench.is_on_gpu() ? 4'000'000 : 400'000) / (floats + 20'000);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(calls, 1, 100));
}

}  // namespace esker::bench
