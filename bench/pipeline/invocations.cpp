// What the host asks the driver for, and what it loses to page faults, for each GB that goes to the GPU and
// back (XeFlow, Figure 10). A launch, a copy and a launched graph are one invocation each, as the paper
// counts. Page faults are those of the host, by the operating system's count: a GPU's own are seen by a
// profiler alone. Managed topics stand for XeFlow's frames, direct ones for frames that stay where they are.
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench.hpp"
#include "esker_side.hpp"
#include "rivals.hpp"

namespace esker::bench {

namespace {

std::uint64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_minflt + usage.ru_majflt);
}

struct Side {
  std::string name;
  double invocations;  // of a frame; of a run that launches once: 0
  std::uint64_t frames;
  std::function<double(std::uint64_t frames)> run;
};
/// Of a whole run: of two, the longer one has those of the frames that it has more.
double faults_of(const Side& side, std::uint64_t frames) {
  const std::uint64_t before = page_faults();
  (void)side.run(frames);
  return static_cast<double>(page_faults() - before);
}

}  // namespace

nlohmann::json take_invocations(const PipelineBench& bench) {
  using pipeline::Crossing;
  nlohmann::json all;
  for (const std::uint64_t kib : {16, 256, 4096}) {
    const std::uint64_t bytes = kib << 10;
    if (kib != 16 && bytes * 16 > bench.bytes) continue;
    const std::uint32_t slots = slots_within(bench, bytes, std::uint64_t{64} << 20);
    const std::uint64_t frames = std::max<std::uint64_t>(bench.bytes / bytes, 4 * slots),
                        few = std::clamp<std::uint64_t>(frames, 64, 4096);
    const auto by_esker = [&, bytes, slots](Crossing crossing) {
      return [&, bytes, slots, crossing](std::uint64_t n) {
        return run_chain(bench.device,
                         {.frame_bytes = bytes, .frames = n, .crossing = crossing, .slots = slots});
      };
    };
    std::vector<Side> sides{
        {"esker, direct", 0, frames, by_esker(Crossing::kDirect)},
        {"esker, managed", 0, 4 * std::uint64_t{slots}, by_esker(Crossing::kManaged)},
        {"copy-kernel-copy", 3, few,
         [&](std::uint64_t n) { return copy_kernel_copy(bench.device, bytes, n, 1); }},
        {"8 streams", 3, few, [&](std::uint64_t n) { return copy_kernel_copy(bench.device, bytes, n, 8); }},
        {"kernels, managed", 1, 64,
         [&](std::uint64_t n) { return kernel_over_managed(bench.device, bytes, n); }}};
#if defined(ESKER_BENCH_GRAPHS)
    sides.push_back(
        {"graph of 8 branches", 1.0 / 8, few, [&](std::uint64_t n) { return graph_of_branches(bytes, n); }});
#endif
    // A side's runs are of different lengths: times and faults are those of a GB.
    const auto gb = [&](std::uint64_t n) { return static_cast<double>(n * bytes) / 1e9; };
    std::vector<PipelineSide> timed;
    for (const Side& side : sides)
      timed.push_back({side.name, [&] { return side.run(side.frames) / gb(side.frames); }});
    nlohmann::json& found = all[std::to_string(bytes)] =
        take_turns(bench, fmt::format("{} KiB", kib), timed, 1, "GB/s each way");
    for (const Side& side : sides) {
      if (found[side.name].contains("error")) continue;
      const double invocations =
          side.invocations == 0 ? 1 / gb(side.frames) : side.invocations * 1e9 / static_cast<double>(bytes);
      const double faults =
          std::max(faults_of(side, 2 * side.frames) - faults_of(side, side.frames), 0.0) / gb(side.frames);
      fmt::print("{:24} {:28} {:10.0f} invocations and {:.0f} page faults of the host a GB\n",
                 fmt::format("{} KiB", kib), side.name, invocations, faults);
      found[side.name]["invocations_per_gb"] = invocations;
      found[side.name]["host_page_faults_per_gb"] = faults;
    }
  }
  return all;
}

}  // namespace esker::bench
