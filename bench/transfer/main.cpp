// esker-bench-transfer: figures of transfers between the host and a device, with rivals in the same run.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <esker/config.hpp>
#include <esker/device.hpp>

#include "../../apps/harness/device_name.hpp"
#include "../harness/figures.hpp"
#include "../harness/report.hpp"
#include "bench.hpp"

namespace esker::bench {

std::span<const TransferFigure> transfer_figures() {
  static const TransferFigure all[] = {
      {"savings", "startups that plans save, by solver, beside the paper's (Kessler, Table 4)", take_savings},
      {"planning", "microseconds to plan, by solver and kernels", take_planning},
      {"fusion", "one kernel, its two uploads apart and together (Kessler, Table 1)", take_fusion},
      {"allocation", "operands allocated apart and together (Kessler, Tables 2 and 6)", take_allocation},
      {"kernel_fusion", "two kernels launched apart and together (Kessler, Table 3)", take_kernel_fusion},
      {"programs", "the paper's programs, fused and not, and replayed (Kessler, Table 5)", take_programs},
      {"replay", "a replayed group of operands beside one contiguous copy", take_replay},
      {"paths", "sets of copies by each path, and by copy_batch()", take_paths},
      {"methods", "both applications on modelled systems (Verner et al., Table 1)", take_methods},
      {"prediction", "predicted against measured times of batches (Table 2)", take_prediction},
      {"bandwidth", "aggregate bandwidth of sets of devices (Figure 7)", take_bandwidth},
      {"behind_large", "a 4 KiB copy behind a large one", take_behind_large},
  };
  return all;
}

}  // namespace esker::bench

namespace {

[[noreturn]] void usage(const std::string& message) {
  fmt::print(stderr, "esker-bench-transfer: {}\n", message);
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) try {
  std::uint64_t repeats = 11, seed = 1, most_floats = 0, most_bytes = 0, most_devices = 8;
  std::string names = "savings", json;
  esker::CommandLine line("esker-bench-transfer",
                          "Transfers between a host and its devices, beside rivals. Figures:" +
                              esker::bench::list_of(esker::bench::transfer_figures()));
  line.add("figure", &names, "which, with commas between them, or all")
      .add("repeats", &repeats, "turns of each side")
      .add("seed", &seed, "of random graphs")
      .add("most-floats", &most_floats, "of an operand; 0: 4 Mi on a GPU, 64 Ki on a CPU")
      .add("bytes", &most_bytes, "of the largest copies of batches; 0: 200 MB on a GPU, 4 MB on others")
      .add("devices", &most_devices, "that batches use, at most")
      .add("json", &json, "write one JSON object to this file; - is standard output");
  const esker::Config config = line.parse(argc, argv);
  if (repeats == 0 || repeats > 1000) usage("--repeats is 1 to 1000");
  if (most_devices == 0) usage("--devices is at least 1");
  const auto named = esker::bench::figures_named(names, esker::bench::transfer_figures());
  nlohmann::json report = esker::bench::provenance("transfer");
  const std::vector<esker::Device> devices =
      esker::transfer::open_all_devices(harness::device_name(config.device), most_devices);
  const esker::Device device = devices.front();
  const bool is_gpu = device.backend() == esker::Backend::kCuda || device.backend() == esker::Backend::kHip;
  if (most_floats == 0) most_floats = device.backend() == esker::Backend::kCpu ? 65536 : 4194304;
  if (most_bytes == 0) most_bytes = is_gpu ? 200'000'000 : 4'000'000;
  const esker::bench::TransferBench bench{device, devices,     static_cast<std::uint32_t>(repeats),
                                          seed,   most_floats, most_bytes};
  report["device"] = device.name();
  report["machine_of_links"] = esker::transfer::machine_name(devices);
  report["settings"] = {{"repeats", repeats},
                        {"seed", seed},
                        {"most_floats", most_floats},
                        {"bytes", most_bytes},
                        {"devices", devices.size()}};
  return esker::bench::take_figures(named, bench, report, json, "esker-bench-transfer");
} catch (const esker::UsageError& error) {
  usage(error.what());
} catch (const std::exception& error) {
  std::fprintf(stderr, "esker-bench-transfer: %s\n", error.what());
  return 1;
}
