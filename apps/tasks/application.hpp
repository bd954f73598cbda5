// What the mains of programs that run tasks have in common: one process and its device, or all PEs of a job.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <esker/config.hpp>
#include <esker/device.hpp>
#include <esker/distributed_tasks.hpp>
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
  std::shared_ptr<harness::OutputFile> json_file, trace;  // from open() or parse() on; null: off
  std::uint64_t hang_seconds = 0;  // what --hang-seconds says: a run that stands still says why
  bool is_silent = false;          // another PE prints

  void add_to(esker::CommandLine& line);
  /// The device that --device names: opened.
  esker::Device parse(esker::CommandLine& line, int argc, char** argv);
  /// The same, of a program that can run over PEs: with a Runtime where a launcher has started several.
  struct Place {
    std::unique_ptr<esker::Runtime> runtime;
    esker::Device device;
  };
  Place open(esker::CommandLine& line, int argc, char** argv);
  esker::tasks::Options task_options() const;

 private:
  esker::Config parse_config(esker::CommandLine& line, int argc, char** argv);
  void open_json();
};

/// Runs of tasks in a place. Collective, where that has PEs.
template <class Root>
class Tasks {
 public:
  Tasks(const Options::Place& place, const esker::tasks::Options& options) : runtime_{place.runtime.get()} {
    if (runtime_ != nullptr) {
      everywhere_.emplace(*runtime_, options);
    } else {
      here_.emplace(place.device, options);
    }
  }
  void run(const Root& root) {
    if (runtime_ != nullptr) {
      everywhere_->run(root);
    } else {
      here_->run(root);
    }
  }
  /// Of this process.
  const esker::tasks::Report& report() const {
    return runtime_ != nullptr ? everywhere_->report() : here_->report();
  }
  /// Of all.
  const esker::tasks::Report& total() const {
    return runtime_ != nullptr ? everywhere_->total() : here_->report();
  }

 private:
  esker::Runtime* runtime_;
  std::optional<esker::tasks::ForkJoin<Root>> here_;
  std::optional<esker::tasks::DistributedForkJoin<Root>> everywhere_;
};

/// Collective. How `mine`, this PE's part of the work in so many units, compares with the others': the fields
/// `pes`, `UNIT_by_pe` and `busiest_over_mean`. Nothing where there is one process.
nlohmann::json balance(const Options::Place& place, const std::string& unit, std::uint64_t mine);

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
