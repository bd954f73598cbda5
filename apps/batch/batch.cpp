// esker-batch: domain decomposition and wafer inspection, on systems that are modelled and on this machine.
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <esker/config.hpp>
#include <esker/device.hpp>
#include <esker/transfer.hpp>

#include "../harness/application.hpp"
#include "../harness/device_name.hpp"
#include "../harness/failure.hpp"
#include "../harness/json.hpp"
#include "domain.hpp"
#include "models.hpp"
#include "wafer.hpp"

namespace {

using namespace batch_apps;
using namespace esker::transfer;

Machine machine_of(std::vector<esker::Device> devices) {
  if (devices.size() == 1) devices.push_back(devices[0]);  // two parts on one device
  Topology topology = machine_topology(devices);
  try {
    topology = calibrated(topology, kept_profile(topology.name()));
  } catch (const esker::Error& error) {
    if (error.kind() != esker::Error::Kind::kTransfer) throw;
    fmt::print(stderr, "esker-batch: measuring the links: {}\n", error.what());
    topology = calibrated(topology, measure_links(devices));
  }
  return {std::move(devices), std::move(topology)};
}

int run(int argc, char** argv) {
  std::string app = "domain", system = "machine", method_name = "batch", size = "small", json;
  std::uint64_t seed = 1, repeats = 1, most_devices = 4, images = 20;
  bool verify = true;
  esker::CommandLine line("esker-batch", "Domain decomposition and wafer inspection by batches.");
  line.add("app", &app, "which", {"domain", "wafer"})
      .add("system", &system, "where: modelled ones in the paper's sizes",
           {"machine", "nehalem", "sandy-bridge"})
      .add("method", &method_name, "how links are shared", {"batch", "bandwidth", "time-division"})
      .add("size", &size, "how much work on this machine", {"small", "medium", "paper"})
      .add("devices", &most_devices, "of this machine, at most")
      .add("images", &images, "that are inspected on this machine")
      .add("seed", &seed, "of the images")
      .add("repeats", &repeats, "runs on this machine; the last is reported")
      .add("verify", &verify, "check what came back")
      .add("json", &json, "write one JSON object to this file; - is standard output");
  const esker::Config config = line.parse(argc, argv);
  if (repeats == 0 || repeats > 1'000'000) harness::usage("--repeats is 1 to 1000000");
  if (most_devices == 0) harness::usage("--devices is at least 1");
  if (images == 0 || images > 1'000'000) harness::usage("--images is 1 to 1000000");
  std::optional<harness::OutputFile> json_file;  // refused before any work
  if (!json.empty()) json_file.emplace(json);
  const Method method = method_of(method_name);
  nlohmann::json object = {
      {"app", "batch-" + app},
      {"system", system},
      {"method", method_name},
      {"version", esker::build_info().version + " " + esker::build_info().commit},
      {"config", {{"size", size}, {"seed", seed}, {"repeats", repeats}, {"images", images}}}};
  std::FILE* const screen = json == "-" ? stderr : stdout;
  bool is_right = true;
  if (system != "machine") {
    const Topology topology = modelled_system(system);
    object["backend"] = "modelled";
    object["verified"] = nullptr;  // nothing is moved
    if (app == "domain") {
      const DomainModel model;
      const DomainTimes times = model_domain(method, topology, model);
      const double bytes = 2 * model.bytes + model.iterations * 2 * model.boundary_bytes;
      fmt::print(screen, "domain on {}, {}: {:.3f} s (scatter {:.3f}, {} x {:.4f}, gather {:.3f})\n", system,
                 method_name, times.total_s, times.scatter_s, model.iterations, times.iteration_s,
                 times.gather_s);
      object.update({{"seconds", times.total_s}, {"work", bytes}, {"rate_per_s", bytes / times.total_s}});
    } else {
      WaferModel model;
      const double whole = model_wafer(method, topology, model);
      model.is_preemption_counted = false;
      const double utilisation = model_wafer(method, topology, model);
      fmt::print(screen, "wafer on {}, {}: images of up to {:.2f} MB; by utilisation alone {:.2f} MB\n",
                 system, method_name, whole / 1e6, utilisation / 1e6);
      object.update({{"seconds", model.image_period_s},
                     {"work", whole},
                     {"rate_per_s", whole / model.image_period_s},
                     {"image_bytes", whole},
                     {"image_bytes_by_utilisation", utilisation}});
    }
  } else {
    const Machine machine = machine_of(open_all_devices(harness::device_name(config.device), most_devices));
    object["backend"] = esker::to_string(machine.devices[0].backend());
    object["machine"] = machine.topology.name();
    const std::uint64_t scale = size == "small" ? 1 : size == "medium" ? 32 : 256;
    Ran ran;
    double work = 0;
    for (std::uint64_t i = 0; i < repeats; ++i) {
      if (app == "domain") {
        const DomainRun domain{scale << 16, scale << 12, size == "small" ? 10u : 100u};
        ran = run_domain(method, machine, domain, verify);
        work = 4.0 * (2.0 * static_cast<double>(domain.words) +
                      2.0 * domain.iterations * static_cast<double>(domain.boundary));
      } else {
        const WaferRun wafer{scale * 400'000, static_cast<std::uint32_t>(images),
                             std::chrono::milliseconds(25), std::chrono::milliseconds(60)};
        ran = run_wafer(method, machine, wafer, seed, verify);
        work = 2.0 * static_cast<double>(wafer.image_bytes) * static_cast<double>(images - ran.refused);
      }
      is_right = is_right && ran.is_right;
    }
    fmt::print(
        screen,
        "{} on {}, {}: {} batches in {:.6f} s, {:.6f} s on the devices, predicted {:.6f} s, {} late, {} "
        "refused{}{}\n",
        app, machine.topology.name(), method_name, ran.batches, ran.seconds, ran.on_devices, ran.predicted,
        ran.late, ran.refused, ran.cause.empty() ? "" : " (" + ran.cause + ")",
        !verify            ? ""
        : ran.batches == 0 ? ", nothing to verify"
        : is_right         ? ", verified"
                           : ", WRONG");
    object.update({{"seconds", ran.seconds},
                   {"seconds_on_devices", ran.on_devices},
                   {"predicted_seconds", ran.predicted},
                   {"batches", ran.batches},
                   {"late", ran.late},
                   {"refused", ran.refused},
                   {"work", work},
                   {"rate_per_s", ran.seconds > 0 ? work / ran.seconds : 0}});
    object["verified"] = verify ? nlohmann::json(is_right) : nlohmann::json(nullptr);
  }
  if (json_file) {
    json_file->write(harness::json_text(object));
    json_file->close();
  }
  harness::flush_standard_output();
  return is_right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-batch", argc, argv, run); }
