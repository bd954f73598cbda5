// What the mains of programs that run tasks have in common. They need no Runtime: one process, one device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <esker/command_line.hpp>
#include <esker/device.hpp>
#include <esker/tasks.hpp>

#include "../harness/json.hpp"
#include "../harness/output.hpp"

namespace task_apps {

/// Options that every one of them takes.
struct Options {
  std::string size = "small";
  std::uint64_t seed = 1;
  std::uint64_t repeats = 3;
  bool verify = true;
  std::string json;
  std::uint64_t memory_bytes = std::uint64_t{64} << 20;
  std::uint64_t domains = 0;
  bool levels = false;
  std::shared_ptr<harness::OutputFile> trace;  // null: off

  void add_to(esker::CommandLine& line);
  /// The device that --device names: opened.
  esker::Device parse(esker::CommandLine& line, int argc, char** argv);
  esker::tasks::Options task_options() const;
};

/// What a program has measured.
struct Measured {
  std::vector<double> seconds;
  esker::tasks::Report report;  // of the last repeat
  bool verified = true;
};

/// One run that is not timed, then `repeats` that are. `run` returns whether its result is right.
Measured measure(const Options& options, const std::function<bool()>& run,
                 const std::function<const esker::tasks::Report&()>& report);

/// The line, the JSON object with `more`, and the exit status.
int finish(const Options& options, const esker::Device& device, const std::string& app,
           const Measured& measured, double work, const std::string& work_unit, nlohmann::json more);

}  // namespace task_apps
