// esker-topology: the links of this machine or of a modelled system, drawn, measured, and what batches on
// them take.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <esker/config.hpp>
#include <esker/device.hpp>
#include <esker/transfer.hpp>

#include "../harness/application.hpp"
#include "../harness/device_name.hpp"
#include "../harness/failure.hpp"
#include "batch_text.hpp"

namespace {

using namespace esker::transfer;

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  if (!in || std::filesystem::is_directory(path)) harness::usage(fmt::format("'{}' cannot be read", path));
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string& path, const std::string& text) {
  harness::OutputFile file(path);
  file.write(text);
  file.close();
}

std::string in_gigabytes(double bytes_per_s) {
  return std::isfinite(bytes_per_s) ? fmt::format("{:.3f}", bytes_per_s / 1e9) : "unknown";
}

void print(const Topology& t, std::FILE* screen) {
  fmt::print(screen, "{}\n", t.name());
  for (const Topology::Node& node : t.nodes()) {
    fmt::print(screen, "  {:<10} {}{}\n", node.name, to_string(node.kind),
               node.kind == Topology::Kind::kDevice
                   ? fmt::format(", copy engines: {}", to_string(node.engines))
                   : std::string());
  }
  fmt::print(screen, "  {:<24} {:>9} {:>14} {:>12} {:>14}\n", "link, GB/s", "alone", "both at once",
             "startup us", "further us");
  for (std::uint32_t link = 0; link < t.links().size(); ++link) {
    const LinkRate& rate = t.links()[link].rate;
    fmt::print(screen, "  {:<24} {:>9} {:>14} {:>12.2f} {:>14.2f}\n", t.link_name(link),
               in_gigabytes(rate.bytes_per_s), in_gigabytes(rate.both()), rate.startup_s * 1e6,
               rate.further_s * 1e6);
  }
}

void print(const Topology& t, const char* method, const Timeline& schedule, std::FILE* screen) {
  fmt::print(screen, "{}: {:.4f} ms{}\n", method, schedule.makespan_s * 1e3,
             schedule.bottleneck == Leg::kNone
                 ? ""
                 : fmt::format("; {} is in use for {:.0f} %", t.link_name(schedule.bottleneck),
                               100 * schedule.utilisation[schedule.bottleneck]));
  for (std::size_t i = 0; i < schedule.streams.size(); ++i) {
    const StreamTimes& times = schedule.streams[i];
    fmt::print(screen, "  stream {}: copy {:.4f} to {:.4f}, kernel {:.4f} to {:.4f} ms\n", i,
               times.copy_begin_s * 1e3, times.copy_end_s * 1e3, times.kernel_begin_s * 1e3,
               times.kernel_end_s * 1e3);
  }
}

/// For copy_batch(): devices of one kind are taken to be alike.
void measure_paths(const esker::Device& device) {
  if (device.backend() == esker::Backend::kCpu) return;
  CopyMeasurement how;
  if (device.backend() == esker::Backend::kSimulated) how = {.bytes = std::size_t{1} << 20, .repeats = 1};
  measure_copies(device, how).keep(device);
}

int run(int argc, char** argv) {
  std::string model, from, svg, dot, json, batch;
  bool measure = false;
  std::uint64_t bytes = 0, devices_at_most = 64;
  esker::CommandLine line("esker-topology",
                          "Memories, devices and the links between them, and what batches take.");
  line.add("model", &model, "a system that is modelled, in place of this machine",
           {"", "example", "nehalem", "sandy-bridge"})
      .add("from", &from, "read the topology from this file, as --json writes it")
      .add("measure", &measure,
           "measure the links of this machine and paths of copies, and keep the result for it")
      .add("bytes", &bytes, "of the largest copies that are measured; 0: 64 MiB, 4 MiB if simulated")
      .add("devices", &devices_at_most, "of this machine, at most")
      .add("batch", &batch,
           "predict this: FROM>TO:BYTES[:KERNEL],..., as host>0:256MiB:10ms; or @FILE with that or JSON")
      .add("svg", &svg, "draw it to this file, by Graphviz")
      .add("dot", &dot, "write it to this file for Graphviz; - is standard output")
      .add("json", &json, "write it as JSON to this file; - is standard output");
  const esker::Config config = line.parse(argc, argv);
  if (!model.empty() + !from.empty() + measure > 1)
    harness::usage("--model, --from and --measure: one of them");
  if (devices_at_most == 0) harness::usage("--devices is at least 1");
  std::FILE* const screen = json == "-" || dot == "-" ? stderr : stdout;
  const auto topology = [&] {
    if (!model.empty()) return modelled_system(model);
    if (!from.empty()) return Topology::from_json(read_file(from), from);
    const std::vector<esker::Device> devices =
        open_all_devices(harness::device_name(config.device), devices_at_most);
    Topology machine = machine_topology(devices);
    if (measure) {
      const LinkProfile profile = measure_links(devices, {bytes, 7});
      keep_profile(profile);
      measure_paths(devices.front());
      return calibrated(machine, profile);
    }
    try {
      return calibrated(machine, kept_profile(machine.name()));
    } catch (const esker::Error& error) {
      // Nothing is kept: it is drawn without bandwidths, and predicts nothing.
      if (error.kind() != esker::Error::Kind::kTransfer || !batch.empty()) throw;
      fmt::print(stderr, "esker-topology: {}\n", error.what());
      return machine;
    }
  }();
  print(topology, screen);
  if (!batch.empty()) {
    const std::string text = batch[0] == '@' ? read_file(batch.substr(1)) : batch;
    const std::vector<StreamModel> streams = model_of(topology, batch_of(text));
    print(topology, "batch", align_ends(topology, streams), screen);
    print(topology, "bandwidth allocation", allocate_bandwidth(topology, streams), screen);
    print(topology, "time division", divide_time(topology, streams), screen);
  }
  if (!svg.empty()) topology.draw_svg(svg);
  if (!dot.empty()) write_file(dot, topology.to_dot());
  if (!json.empty()) write_file(json, topology.to_json() + "\n");
  harness::flush_standard_output();
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-topology", argc, argv, run); }
