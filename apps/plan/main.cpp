// plan: the programs of Kessler's evaluation, their transfers fused as a plan says, on a device.
//
// Verified against the same computation on the host (Program::is_right()).
#include <algorithm>
#include <chrono>
#include <cstdint>
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
#include "../harness/output.hpp"
#include "program.hpp"

namespace {

namespace transfer = esker::transfer;

transfer::Solver solver_of(const std::string& name, bool unfused) {
  if (unfused || name == "unfused") return transfer::Solver::kUnfused;
  return name == "greedy"  ? transfer::Solver::kGreedy
         : name == "tight" ? transfer::Solver::kTight
                           : transfer::Solver::kExact;
}

/// The machine's; where it has fewer, from the first one on again.
std::vector<esker::Device> open(esker::DeviceKind kind, std::uint64_t n) {
  std::vector<esker::Device> devices = transfer::open_all_devices(harness::device_name(kind), n);
  for (std::size_t i = 0; devices.size() < n; ++i) devices.push_back(devices[i]);
  return devices;
}

void write_file(const std::string& name, const std::string& text) {
  if (name.empty()) return;
  harness::OutputFile file(name);
  file.write(text);
  file.close();
}

int run(int argc, char** argv) {
  plan_apps::Shape shape;
  shape.graph = "figure2";
  std::string size = "small", solver = "exact", json, dot, emit;
  std::uint64_t n = 0, repeats = 5, floats = 0, attempts = 4, device_bytes = 0, n_devices = 1;
  bool unfused = false, verify = true, replay = false, report = false, inbound = false;
  esker::CommandLine line("esker-plan", "Runs a program of kernels with its transfers fused by a plan.");
  line.add("graph", &shape.graph, "which program",
           {"figure2", "random", "chain", "tree", "horner", "cholesky", "matmul", "cg"})
      .add("solver", &solver, "what plans", {"exact", "greedy", "tight", "unfused"})
      .add("unfused", &unfused, "a transfer an operand, whatever --solver says")
      .add("size", &size, "floats an operand, if --floats is 0: 4096, 65536, 1048576",
           {"small", "medium", "paper"})
      .add("floats", &floats, "of an operand; a tile has about as many")
      .add("n", &n, "kernels of random and chain, levels of tree, degree, tiles a row; 0: the paper's")
      .add("seed", &shape.seed, "of whatever is random")
      .add("device-share", &shape.device_share, "of the kernels of random, chain and tree")
      .add("inbound", &inbound, "tree: many operands to one")
      .add("syrk-on-host", &shape.syrk_on_host, "cholesky: SYRK too")
      .add("linear", &shape.linear, "synthetic kernels of linear work, whatever the program")
      .add("attempts", &attempts, "of the paper's heuristic")
      .add("device-bytes", &device_bytes, "most that the plan may take, by --solver exact; 0: what there is")
      .add("devices", &n_devices, "that kernels are dealt to in turn; of fewer, some are used twice")
      .add("replay", &replay, "run it by graphs that are captured once")
      .add("repeats", &repeats, "runs that are timed")
      .add("verify", &verify, "check the result")
      .add("report", &report, "print the plan")
      .add("dot", &dot, "write the plan as a picture for Graphviz to this file; - is standard output")
      .add("emit", &emit, "write the program as CUDA C++ to this file; - is standard output")
      .add("json", &json, "write one JSON object to this file; - is standard output");
  const esker::Config config = line.parse(argc, argv);
  if (repeats == 0 || repeats > 1'000'000) harness::usage("--repeats is 1 to 1000000");
  if (attempts == 0 || attempts > 1'000'000) harness::usage("--attempts is 1 to 1000000");
  if (n_devices == 0 || n_devices > 255) harness::usage("--devices is 1 to 255");
  if (n > 4096) harness::usage("--n is at most 4096");
  if (!(shape.device_share >= 0 && shape.device_share <= 1)) harness::usage("--device-share is 0 to 1");
  std::optional<harness::OutputFile> json_file;  // refused before any work
  if (!json.empty()) json_file.emplace(json);
  shape.n = static_cast<std::uint32_t>(n);
  shape.floats = floats != 0 ? floats : size == "small" ? 4096 : size == "medium" ? 65536 : 1048576;
  shape.outbound = !inbound;

  const std::vector<esker::Device> devices = open(config.device, n_devices);
  const esker::Device& device = devices[0];
  plan_apps::Program program(devices, shape);
  transfer::Plan& plan = program.plan();
  plan.build({.solver = solver_of(solver, unfused),
              .attempts = static_cast<std::uint32_t>(attempts),
              .seed = shape.seed,
              .device_bytes = device_bytes});
  std::FILE* const screen = json == "-" || dot == "-" || emit == "-" ? stderr : stdout;
  if (report) std::fprintf(screen, "%s", plan.report().c_str());
  write_file(dot, plan.to_dot());
  if (!emit.empty()) write_file(emit, transfer::emit_cuda(plan.graph(), plan.schedule(), plan.layout()));

  const esker::Stream stream = device.stream();
  program.fill();
  bool right = true;
  std::vector<double> seconds;
  for (std::uint64_t i = 0; i <= repeats; ++i) {
    if (i > 0) program.feed_back();
    if (verify) program.clear_results();
    const harness::Stopwatch watch;
    if (replay) {
      plan.replay(stream);
    } else {
      plan.run(stream);
    }
    if (i > 0) seconds.push_back(watch.seconds());
    if (verify) right = program.is_right() && right;
  }
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  const transfer::Schedule& schedule = plan.schedule();
  double bytes = 0;
  for (const transfer::Startup& startup : schedule.startups)
    bytes += static_cast<double>(plan.layout().bytes_of(plan.graph(), schedule, startup));
  fmt::print(screen, "plan {} on {}{}: {:.6f} s, {} transfers in {} startups, {} saved, at least {}{}\n",
             shape.graph, device.name(), n_devices == 1 ? "" : fmt::format(" and {} more", n_devices - 1),
             median, schedule.transfers, schedule.startups.size(), schedule.saved(), schedule.lower_bound,
             !verify ? ""
             : right ? ", verified"
                     : ", WRONG");
  if (json_file) {
    nlohmann::json object = {{"app", "plan"},
                             {"backend", esker::to_string(device.backend())},
                             {"device", device.name()},
                             {"seconds", median},
                             {"seconds_min", seconds.front()},
                             {"seconds_max", seconds.back()},
                             {"work", bytes},
                             {"work_unit", "bytes transferred"},
                             {"rate_per_s", bytes / median},
                             {"graph", shape.graph},
                             {"solver", plan.solver()},
                             {"kernels", plan.graph().kernels()},
                             {"operands", plan.graph().operands()},
                             {"transfers", schedule.transfers},
                             {"startups", schedule.startups.size()},
                             {"saved", schedule.saved()},
                             {"lower_bound", schedule.lower_bound},
                             {"plan_us", plan.plan_seconds() * 1e6},
                             {"device_bytes", plan.layout().bytes[1]},
                             {"device_bytes_without_reuse", plan.layout().separate_bytes[1]},
                             {"version", esker::build_info().version + " " + esker::build_info().commit}};
    object["verified"] = verify ? nlohmann::json(right) : nlohmann::json(nullptr);
    object["config"] = {{"floats", shape.floats},
                        {"n", shape.n},
                        {"seed", shape.seed},
                        {"repeats", repeats},
                        {"replay", replay},
                        {"devices", n_devices},
                        {"device_share", shape.device_share},
                        {"attempts", attempts},
                        {"inbound", inbound},
                        {"linear", shape.linear},
                        {"syrk_on_host", shape.syrk_on_host},
                        {"device_bytes", device_bytes}};
    json_file->write(harness::json_text(object));
    json_file->close();
  }
  harness::flush_standard_output();
  return !verify || right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-plan", argc, argv, run); }
