// The six programs that HiWayLib is measured by, beside the scheme that is its baseline (Figure 10):
// esker-pipe-* of this build, each run a process of its own that verifies and times itself. The baseline is
// Hetero-Mark's chunks; of the two stencils it is the paper's basic scheme, and here what these programs have
// without a pipeline, too.
#include <array>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bench.hpp"

namespace esker::bench {

namespace {

struct Program {
  const char* name;
  const char* arguments;  // of all sides
  std::vector<std::pair<const char*, const char*>> sides;
};
const std::vector<Program>& programs() {
  static constexpr std::pair<const char*, const char*> kEsker{"esker", "--scheme esker"},
      kChunks{"chunks", "--scheme chunks"}, kCopies{"copy-kernel-copy", "--scheme copy-kernel-copy"};
  static const std::vector<Program> all{
      {"gene-alignment", "--workers 4", {kChunks, kEsker}},
      {"evolution", "--workers 4", {kChunks, kEsker}},
      {"reyes", "--frame-bytes 4096 --frames 4096", {kChunks, kEsker}},
      {"rasterisation", "", {kChunks, kEsker}},
      {"face-detection", "", {kCopies, kChunks, kEsker}},
      {"stencil",
       "",
       {{"basic: items, batched", "--scheme esker --by items --crossing batched"},
        kCopies,
        {"streams", "--scheme streams"},
        {"esker: regions", "--scheme esker --by regions"}}}};
  return all;
}

/// Of a run that is verified: its seconds.
double run_program(const std::string& command) {
  std::FILE* const pipe = popen((command + " --repeats 1 --json - 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("popen failed");
  std::string output;
  std::array<char, 4096> some{};
  for (std::size_t n = 0; (n = std::fread(some.data(), 1, some.size(), pipe)) != 0;)
    output.append(some.data(), n);
  const int status = pclose(pipe);
  const auto result = nlohmann::json::parse(output, nullptr, false);
  if (status != 0 || result.is_discarded() || result.value("verified", nlohmann::json()) != true)
    throw std::runtime_error(fmt::format("'{}' has ended with status {}, or is wrong", command, status));
  return result.at("seconds").get<double>();
}

}  // namespace

nlohmann::json take_programs(const PipelineBench& bench) {
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const char* const size = bench.bytes >= 1'000'000'000 ? "paper"
                           : bench.bytes >= 100'000'000 ? "medium"
                                                        : "small";
  const std::string device =
      bench.device.backend() == Backend::kSimulated ? "auto" : to_string(bench.device.backend());
  nlohmann::json all;
  for (const Program& program : programs()) {
    const std::filesystem::path file = folder / (std::string("esker-pipe-") + program.name);
    if (!std::filesystem::exists(file))
      throw std::runtime_error(file.string() + " is not there: it takes ESKER_BUILD_APPS");
    std::vector<PipelineSide> sides;
    for (const auto& [name, arguments] : program.sides) {
      const std::string command = fmt::format("'{}' --device {} --size {} {} {}", file.string(), device, size,
                                              program.arguments, arguments);
      sides.push_back({name, [command] { return run_program(command); }});
    }
    nlohmann::json& found = all[program.name] =
        take_turns(bench, fmt::format("{} {}", program.name, size), sides, 1, "runs/s");
    const auto seconds = [&](std::size_t side) { return found[sides[side].name].value("median_s", 0.0); };
    if (seconds(0) == 0 || seconds(sides.size() - 1) == 0) continue;
    const double times = seconds(0) / seconds(sides.size() - 1);
    found["times"] = times;
    fmt::print("{:24} {:.2f} times as fast as {}\n", program.name, times, sides[0].name);
  }
  return all;
}

}  // namespace esker::bench
