// Sides of a comparison, which are verified and then take turns.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace esker::bench {

/// What one run of a side has found, and how long it took.
struct Outcome {
  std::uint64_t result = 0;
  double seconds = 0;
};

struct Side {
  std::string name;
  std::function<Outcome()> run;
  /// Of its last run, for the JSON object; may be empty.
  std::function<nlohmann::json()> facts = {};
};

/// Runs that are timed: `repeats`, but no more of a side than take `seconds` together, and at least one.
struct Effort {
  std::uint64_t repeats = 7;
  double seconds = 10;
};

/// Seconds from a call to its return.
Outcome timed(const std::function<std::uint64_t()>& run);

/// Runs each side once, which must find `expected`, and then all in turn, `repeats` times. Prints a line a
/// side, and returns {problem, result, tasks, sides: [{name, seconds: [], median, lowest, highest,
/// tasks_per_s, facts...}]}; of another unit of work with its name in place of "tasks".
/// Errors. std::runtime_error that names the side: its result is another one. What a side throws.
nlohmann::json take_turns(const std::string& problem, std::uint64_t expected, double work,
                          const std::vector<Side>& sides, const Effort& effort,
                          const std::string& unit = "tasks");

/// The median of the side with this name, in what take_turns() returns.
double median_of(const nlohmann::json& turns, const std::string& side);

}  // namespace esker::bench
