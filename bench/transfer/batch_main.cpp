// esker-bench-batch: the figures of batches.
#include <cstdio>
#include <exception>
#include <string>

#include <fmt/format.h>

#include <esker/command_line.hpp>
#include <esker/device.hpp>
#include <esker/transfer.hpp>

#include "../harness/report.hpp"
#include "batch_figures.hpp"

int main(int argc, char** argv) try {
  using esker::bench::BatchBench;
  const struct {
    const char* name;
    const char* what;
    nlohmann::json (*take)(const BatchBench& bench);
  } figures[] = {
      {"methods", "both applications on modelled systems (Verner et al., Table 1)",
       esker::bench::take_methods},
      {"prediction", "predicted against measured (Table 2)", esker::bench::take_prediction},
      {"bandwidth", "aggregate bandwidth of sets of devices (Figure 7)", esker::bench::take_bandwidth},
      {"behind-large", "a 4 KiB copy behind a large one", esker::bench::take_behind_large}};
  std::uint64_t repeats = 15, bytes = 0, most_devices = 8;
  std::string names = "methods", json, list;
  for (const auto& figure : figures) list += fmt::format("\n  {:12} {}", figure.name, figure.what);
  esker::CommandLine line("esker-bench-batch", "Batches of copies and kernels. Figures:" + list);
  line.add("figure", &names, "which, with commas between them, or all")
      .add("repeats", &repeats, "runs of each, whose median counts")
      .add("bytes", &bytes, "of the largest copies; 0: 200 MB on a GPU, 4 MB on others")
      .add("devices", &most_devices, "at most")
      .add("json", &json, "write one JSON object to this file; - is standard output");
  const esker::Config config = line.parse(argc, argv);
  if (repeats == 0 || repeats > 1000 || most_devices == 0) {
    fmt::print(stderr, "esker-bench-batch: --repeats is 1 to 1000, --devices at least 1\n");
    return 2;
  }
  nlohmann::json report = esker::bench::provenance("batch");
  std::vector<esker::Device> devices;
  if (config.device == esker::DeviceKind::kCpu) {
    devices.push_back(esker::Device::open("cpu"));
  } else {
    devices = esker::transfer::open_all_devices();
  }
  if (devices.size() > most_devices)
    devices.erase(devices.begin() + static_cast<std::ptrdiff_t>(most_devices), devices.end());
  const bool is_gpu =
      devices[0].backend() == esker::Backend::kCuda || devices[0].backend() == esker::Backend::kHip;
  if (bytes == 0) bytes = is_gpu ? 200'000'000 : 4'000'000;
  const BatchBench bench{devices, static_cast<std::uint32_t>(repeats), bytes};
  report["machine"] = esker::transfer::machine_name(devices);
  report["settings"] = {{"repeats", repeats}, {"bytes", bytes}, {"devices", devices.size()}};
  bool has_failed = false, is_known = false;
  for (const auto& figure : figures) {
    if (names != "all" && ("," + names + ",").find("," + std::string(figure.name) + ",") == std::string::npos)
      continue;
    is_known = true;
    fmt::print("--- {}: {}\n", figure.name, figure.what);
    try {
      report["figures"][figure.name] = figure.take(bench);
    } catch (const std::exception& error) {
      report["figures"][figure.name] = {{"error", error.what()}};
      fmt::print(stderr, "esker-bench-batch: {}: {}\n", figure.name, error.what());
      has_failed = true;
    }
  }
  if (!is_known) {
    fmt::print(stderr, "esker-bench-batch: --figure '{}' is none; --help has their names\n", names);
    return 2;
  }
  if (!json.empty()) esker::bench::write_json(report, json);
  return has_failed ? 1 : 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "esker-bench-batch: %s\n", error.what());
  return 1;
}
