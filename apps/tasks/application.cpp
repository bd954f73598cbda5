// Options, repeats, the report and the exit status of programs that run tasks.
#include "application.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <span>
#include <utility>

#include <esker/config.hpp>

#include "../harness/failure.hpp"
#include "../harness/output.hpp"

namespace task_apps {

void Options::add_to(esker::CommandLine& line) {
  line.add("size", &size, "how much work", {"small", "medium", "paper"})
      .add("seed", &seed, "of whatever is random")
      .add("repeats", &repeats, "runs that are timed")
      .add("verify", &verify, "check the result")
      .add("json", &json, "write one JSON object to this file; - is standard output")
      .add("memory-bytes", &memory_bytes, "memory of the device for tasks that wait")
      .add("domains", &domains, "waves of a GPU, or threads, that run tasks; 0: all there are")
      .add("levels", &levels,
           "count batches by channel and segment of stacks, which takes time; --trace does too");
}

esker::Config Options::parse_config(esker::CommandLine& line, int argc, char** argv) {
  esker::Config config = line.parse(argc, argv);
  if (repeats == 0 || repeats > 1'000'000) harness::usage("--repeats is 1 to 1000000");
  if (domains > 0xffffffffu) harness::usage("--domains is below 2^32");
  // If it is said, and not the default: a kernel that is watched is slower (docs/lab/tasks.md).
  hang_seconds = config.hang_seconds != esker::Config{}.hang_seconds ? config.hang_seconds : 0;
  return config;
}

Options::Place Options::open(esker::CommandLine& line, int argc, char** argv) {
  if (esker::launched_processes() == 1) return {nullptr, parse(line, argc, argv)};
  auto runtime = std::make_unique<esker::Runtime>(parse_config(line, argc, argv));
  is_silent = runtime->pe() != 0;
  harness::agree(*runtime, [&] {
    if (!is_silent) open_json();
  });
  const esker::Device device = runtime->device();
  return {std::move(runtime), device};
}

/// Before any work: a file that cannot be written.
void Options::open_json() {
  if (!json.empty()) json_file = std::make_shared<harness::OutputFile>(json);
}

esker::Device Options::parse(esker::CommandLine& line, int argc, char** argv) {
  const esker::Config config = parse_config(line, argc, argv);
  open_json();
  if (!config.trace.empty()) trace = std::make_shared<harness::OutputFile>(config.trace);
  switch (config.device) {
    case esker::DeviceKind::kCpu:
      return esker::Device::open("cpu");
    case esker::DeviceKind::kCuda:
      return esker::Device::open("cuda");
    case esker::DeviceKind::kHip:
      return esker::Device::open("hip");
    case esker::DeviceKind::kAuto:
      break;
  }
  return esker::Device::open();
}

esker::tasks::Options Options::task_options() const {
  esker::tasks::Options options;
  options.memory_bytes = memory_bytes;
  options.domains = static_cast<std::uint32_t>(domains);
  options.watch = options.time_tasks = levels || trace != nullptr;
  options.hang_after = std::chrono::seconds{hang_seconds};
  return options;
}

namespace {

/// Sums over domains, and what a run that was watched has kept.
nlohmann::json facts_of(const esker::tasks::Report& report) {
  nlohmann::json facts = {{"tasks", report.tasks},
                          {"batches", report.batches},
                          {"full_batches", report.full_batches},
                          {"resumed_batches", report.resumed},
                          {"given", report.given},
                          {"suspended", report.suspended},
                          {"spilled_levels", report.spilled},
                          {"waits", report.waits},
                          {"sent_to_pes", report.sent},
                          {"idle_seconds", std::chrono::duration<double>(report.idle).count()},
                          {"domain_seconds", std::chrono::duration<double>(report.present).count()},
                          {"peak_memory_bytes", report.peak_memory_bytes}};
  if (report.in_tasks.count() != 0)
    facts["task_seconds"] = std::chrono::duration<double>(report.in_tasks).count();
  for (const esker::tasks::LevelCounts& counts : report.watched.levels) {
    facts["levels"].push_back({{"channel", counts.channel},
                               {"first_segment", counts.first_segment},
                               {"tasks", counts.tasks},
                               {"batches", counts.batches},
                               {"full_batches", counts.full_batches}});
  }
  if (!report.watched.given.empty()) facts["given_tasks_of_channels"] = report.watched.given;
  return facts;
}

}  // namespace

Measured measure(const Options& options, const std::function<bool()>& run,
                 const std::function<const esker::tasks::Report&()>& report) {
  Measured measured;
  measured.verified = run();
  for (std::uint64_t i = 0; i < options.repeats; ++i) {
    measured.verified = run() && measured.verified;
    measured.seconds.push_back(std::chrono::duration<double>(report().time).count());
  }
  measured.report = report();
  return measured;
}

nlohmann::json balance(const Options::Place& place, const std::string& unit, std::uint64_t mine) {
  if (place.runtime == nullptr) return nlohmann::json::object();
  std::vector<std::uint64_t> all(place.runtime->n_pes(), 0);
  all[place.runtime->pe()] = mine;
  place.runtime->all_reduce(std::span(all), esker::Reduction::kSum);
  const double sum = static_cast<double>(std::accumulate(all.begin(), all.end(), std::uint64_t{0}));
  const double busiest = static_cast<double>(*std::max_element(all.begin(), all.end()));
  return {{"pes", all.size()},
          {unit + "_by_pe", all},
          {"busiest_over_mean", sum == 0 ? 1 : busiest * static_cast<double>(all.size()) / sum}};
}

int finish(const Options& options, const esker::Device& device, const std::string& app,
           const Measured& measured, double work, const std::string& work_unit, nlohmann::json more) {
  std::vector<double> sorted = measured.seconds;
  std::sort(sorted.begin(), sorted.end());
  const double seconds = sorted[sorted.size() / 2];
  const bool right = !options.verify || measured.verified;
  const esker::tasks::Report& report = measured.report;
  if (options.is_silent) return right ? 0 : 1;
  std::FILE* const screen = options.json == "-" ? stderr : stdout;
  const bool is_giga = work_unit == "FLOP";  // as these are usually said
  std::fprintf(screen, "%s on %s: %.6f s, %.4g %s%s/s%s\n", app.c_str(), device.name().c_str(), seconds,
               work / seconds / (is_giga ? 1e9 : 1e6), is_giga ? "G" : "M ", work_unit.c_str(),
               !options.verify ? ""
               : right         ? ", verified"
                               : ", WRONG");
  if (more.contains("pes")) {
    std::fprintf(screen,
                 "%s over %u PEs: the busiest has done %.2f times the mean, %llu parcels of tasks sent\n",
                 app.c_str(), more["pes"].get<unsigned>(), more["busiest_over_mean"].get<double>(),
                 static_cast<unsigned long long>(report.sent));
  }
  if (options.json_file != nullptr) {
    nlohmann::json object = {{"app", app},
                             {"backend", esker::to_string(device.backend())},
                             {"device", device.name()},
                             {"seconds", seconds},
                             {"seconds_min", sorted.front()},
                             {"seconds_max", sorted.back()},
                             {"work", work},
                             {"work_unit", work_unit},
                             {"rate_per_s", work / seconds},
                             {"version", esker::build_info().version + " " + esker::build_info().commit}};
    object["verified"] = options.verify ? nlohmann::json(right) : nlohmann::json(nullptr);
    object["config"] = {{"memory_bytes", options.memory_bytes},
                        {"domains", report.domains},
                        {"repeats", options.repeats},
                        {"seed", options.seed}};
    object["tasks"] = facts_of(report);
    object.update(more);
    options.json_file->write(harness::json_text(object));
    options.json_file->close();
  }
  if (options.trace != nullptr) {
    options.trace->write(esker::tasks::trace_json(report.watched));
    options.trace->close();
  }
  harness::flush_standard_output();
  return right ? 0 : 1;
}

}  // namespace task_apps
