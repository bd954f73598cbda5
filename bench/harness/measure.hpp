// Repeated timing: median and spread of a rate.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace esker::bench {

/// Rates of the repeats of one measurement, in units a second.
struct Rate {
  double median = 0, lowest = 0, highest = 0;
};

/// Requires at least one rate.
Rate summarise(std::vector<double> rates);

/// How often and how long.
struct Effort {
  std::uint32_t repeats = 25;  // many and short: less of them meets another load
  double seconds = 0.01;       // of one repeat, about
  std::uint64_t units = 0;     // of one repeat; 0: as many as take `seconds`
};

/// Runs `units` and returns the seconds that it took.
using Run = std::function<double(std::uint64_t units)>;

/// Measures things that are compared. Each is run until one run is long enough to tell its rate; then all
/// take turns, `repeats` times, so that whatever else the machine does meets each of them alike. The caller
/// has warmed up and verified what the runs do. Returns a rate a run, in the order of `runs`.
std::vector<Rate> measure(const Effort& effort, std::uint64_t first_units, const std::vector<Run>& runs);

}  // namespace esker::bench
