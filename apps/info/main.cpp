// esker-info: what was built, what the host has, where the stages run, and every setting with its origin.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <esker/config.hpp>

#include "../harness/json.hpp"
#include "topology.hpp"

namespace {

using Json = nlohmann::ordered_json;

/// A row of the architecture's policy table.
struct Policy {
  std::string heap;
  std::string aggregate;
  std::string apply;
  std::string state;
};

std::vector<Policy> policies(const esker::Config& config) {
  const bool device_built = esker::build_info().devices.size() > 1;
  const bool has_device = device_built && esker::gpus_here() > 0;
  const bool on_cpu = config.device == esker::DeviceKind::kCpu || !has_device;
  const bool heap_there = !on_cpu && config.heap != esker::HeapKind::kHost;
  const std::string absent = !device_built ? "no device back end is built"
                             : !has_device ? "there is no GPU"
                             : on_cpu      ? "not with device = cpu"
                                           : "not with heap = host";
  const bool peers = heap_there && config.peer_memory != esker::PeerMemory::kOff;
  return {{"host memory", "host threads", "network thread and helpers", heap_there ? "not in use" : "in use"},
          {"device memory", "host threads", "device", heap_there ? "in use, for PEs of other hosts" : absent},
          {"device memory", "device", "device",
           !heap_there ? absent
           : peers     ? "in use, for this PE and the host's other GPUs"
                       : "in use, for this PE alone (peer_memory = off)"}};
}

/// How frames reach a device.
std::string mpi_awareness() {
  return "MPI moves host memory: frames are copied to the device by the library, whether or not MPI could";
}

Json as_json(const esker::Config& config, const Topology& host) {
  const esker::BuildInfo& build = esker::build_info();
  Json json;
  json["version"] = build.version;
  json["commit"] = build.commit;
  json["devices"] = build.devices;
  json["transports"] = build.transports;
  json["host"] = {{"packages", host.packages},
                  {"cores", host.cores},
                  {"hardware_threads", host.hardware_threads},
                  {"allowed_threads", host.allowed_threads},
                  {"memory_bytes", host.memory_bytes},
                  {"numa_bytes", host.numa_bytes}};
  json["stages"] = Json::array();
  json["mpi_and_device_memory"] = mpi_awareness();
  for (const Policy& p : policies(config)) {
    json["stages"].push_back(
        {{"heap", p.heap}, {"aggregate", p.aggregate}, {"apply", p.apply}, {"state", p.state}});
  }
  json["config"] = Json::parse(esker::to_json(config));
  json["settings"] = Json::array();
  for (const esker::ConfigRow& row : esker::describe(config)) {
    json["settings"].push_back({{"name", row.name},
                                {"value", row.value},
                                {"unit", row.unit},
                                {"origin", row.origin},
                                {"legal", row.legal},
                                {"help", row.help}});
  }
  json["warnings"] = config.warnings;
  return json;
}

std::string rounded(std::uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1024.0 * 1024 * 1024));
}

void print(const esker::Config& config, const Topology& host) {
  const esker::BuildInfo& build = esker::build_info();
  fmt::print("esker {} (commit {})\n", build.version, build.commit);
  fmt::print("devices     {}\n", fmt::join(build.devices, ", "));
  fmt::print("transports  {}\n", fmt::join(build.transports, ", "));
  fmt::print("host        packages {}, cores {}, hardware threads {} (of these for this process {})\n",
             host.packages, host.cores, host.hardware_threads, host.allowed_threads);
  fmt::print("memory      {}, NUMA nodes {}\n", rounded(host.memory_bytes), host.numa_bytes.size());
  if (host.numa_bytes.size() > 1) {
    for (std::size_t i = 0; i < host.numa_bytes.size(); ++i) {
      fmt::print("            NUMA node {}: {}\n", i, rounded(host.numa_bytes[i]));
    }
  }

  fmt::print("\n{:<14} {:<13} {:<27} {}\n", "heap in", "aggregate on", "apply on", "state");
  for (const Policy& p : policies(config)) {
    fmt::print("{:<14} {:<13} {:<27} {}\n", p.heap, p.aggregate, p.apply, p.state);
  }
  fmt::print("{}\n", mpi_awareness());

  const std::vector<esker::ConfigRow> rows = esker::describe(config);
  std::size_t value_width = 5;
  std::size_t origin_width = 6;
  for (const esker::ConfigRow& row : rows) {
    value_width = std::max(value_width, row.value.size());
    origin_width = std::max(origin_width, row.origin.size());
  }
  const auto line = [&](const auto& name, const auto& value, const auto& unit, const auto& origin,
                        const auto& legal) {
    fmt::print("{:<23}  {:<{}}  {:<8}  {:<{}}  {}\n", name, value, value_width, unit, origin, origin_width,
               legal);
  };
  fmt::print("\n");
  line("setting", "value", "unit", "origin", "legal");
  for (const esker::ConfigRow& row : rows) line(row.name, row.value, row.unit, row.origin, row.legal);
}

void write_json(const std::string& path, const std::string& text) {
  if (path == "-") {
    fmt::print("{}", text);
    return;
  }
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file)
    throw esker::Error(esker::Error::Kind::kConfiguration, fmt::format("--json: cannot write {}", path));
}

}  // namespace

int main(int argc, char** argv) {
  std::string json;
  esker::CommandLine line("esker-info",
                          "What was built, what the host has, and every setting with its origin.");
  line.add("json", &json, "write one JSON object to FILE; -: standard output, in place of the text");
  const esker::Config config = line.parse(argc, argv);
  try {
    for (const std::string& warning : config.warnings) fmt::print(stderr, "esker: warning: {}\n", warning);
    const Topology host = read_topology();
    if (json != "-") print(config, host);
    if (!json.empty()) write_json(json, harness::json_text(as_json(config, host)));
    errno = 0;
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      throw esker::Error(
          esker::Error::Kind::kConfiguration,
          fmt::format("standard output: cannot be written: {}", std::strerror(errno == 0 ? EIO : errno)));
    }
  } catch (const std::exception& e) {
    fmt::print(stderr, "esker-info: {}\n", e.what());
    return 1;
  }
  return 0;
}
