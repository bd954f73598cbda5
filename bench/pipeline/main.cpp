// esker-bench-pipeline: figures of pipelines between the host and a device, with rivals in the same run.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <esker/config.hpp>
#include <esker/device.hpp>

#include "../harness/figures.hpp"
#include "../harness/report.hpp"
#include "bench.hpp"

namespace esker::bench {

nlohmann::json take_turns(const PipelineBench& bench, const std::string& what,
                          const std::vector<PipelineSide>& sides, double units, const std::string& unit) {
  std::vector<std::vector<double>> times(sides.size());
  std::vector<std::string> errors(sides.size());
  for (std::uint32_t round = 0; round <= bench.repeats; ++round) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
      if (!errors[i].empty()) continue;
      try {
        const double seconds = sides[i].run();
        if (round != 0) times[i].push_back(seconds);
      } catch (const std::exception& error) {
        errors[i] = error.what();
      }
    }
  }
  nlohmann::json results;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    if (!errors[i].empty()) {
      fmt::print("{:24} {:28} failed: {}\n", what, sides[i].name, errors[i]);
      results[sides[i].name] = {{"error", errors[i]}};
      continue;
    }
    std::sort(times[i].begin(), times[i].end());
    const double median = times[i][times[i].size() / 2];
    fmt::print("{:24} {:28} {:10.3f} {} ({:.6f} s, {:.6f} to {:.6f})\n", what, sides[i].name, units / median,
               unit, median, times[i].front(), times[i].back());
    results[sides[i].name] = {{"median_s", median},
                              {"min_s", times[i].front()},
                              {"max_s", times[i].back()},
                              {"rate", units / median}};
  }
  std::fflush(stdout);
  return results;
}

std::span<const PipelineFigure> pipeline_figures() {
  static const std::vector<PipelineFigure> all {
    {"ping-pong", "doubling words: GB/s each way by frame size (XeFlow, Figure 8)", take_ping_pong},
        {"latency", "a frame of 64 bytes there and back, one at a time", take_latency},
        {"chains", "C(G)nC and C(GC)n for n = 1 to 4 (XeFlow, Figure 12)", take_chains},
#if !defined(ESKER_BENCH_TBB)
        {"crossing", "direct and batched frames by size: what Crossing::kAuto goes by, with --keep",
         take_crossing},
        {"workloads", "work of six kinds by frame size (XeFlow, Figure 9)", take_workloads},
        {"invocations", "invocations and page faults a GB (XeFlow, Figure 10)", take_invocations},
        {"rounds", "where a team's time goes, by frame size (XeFlow, Figure 11)", take_rounds},
        {"division",
         "two stages of unlike work: teams by regression, one by one, and moved (XeFlow, Figure 13)",
         take_division},
        {"tuning", "how long samples and their regression take (XeFlow, Table 2)", take_tuning},
        {"contention", "lanes that emit: each alone, an election, a status array (HiWayLib, section 3.4)",
         take_contention},
        {"breakdown", "HiWayLib's techniques one by one: a recursion and a stencil (HiWayLib, Figure 11)",
         take_breakdown},
#endif
        {"programs", "the programs of HiWayLib beside its baseline (HiWayLib, Figure 10)", take_programs},
        {"end", "from the last item to the end of the run", take_end},
#if defined(ESKER_BENCH_TBB)
        {"tbb", "items of 8 bytes, and frames of 64 KiB, beside oneTBB's parallel_pipeline and flow graph",
         take_tbb},
#endif
  };
  return all;
}

}  // namespace esker::bench

namespace {

[[noreturn]] void usage(const std::string& message) {
  fmt::print(stderr, "esker-bench-pipeline: {}\n", message);
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) try {
  std::uint64_t repeats = 5, bytes = 0, frames = 1024;
  std::string names = "ping-pong", json;
  bool keep = false;
  esker::CommandLine line("esker-bench-pipeline",
                          "Pipelines on one device, beside rivals. Figures:" +
                              esker::bench::list_of(esker::bench::pipeline_figures()));
  line.add("figure", &names, "which, with commas between them, or all")
      .add("repeats", &repeats, "runs of each side, in turn")
      .add("bytes", &bytes, "that a run moves each way; 0: 2 GB on a GPU, 64 MB on a CPU")
      .add("frames", &frames, "of a topic, at most: 256 MiB of large ones")
      .add("keep", &keep, "let pipelines on this machine go by what the figure crossing finds")
      .add("json", &json, "write one JSON object to this file; - is standard output");
  const esker::Config config = line.parse(argc, argv);
  if (repeats == 0 || repeats > 1000) usage("--repeats is 1 to 1000");
  if (frames == 0 || frames > 65536) usage("--frames is 1 to 65536");
  const char* const kinds[] = {"auto", "cpu", "cuda", "hip"};
  const auto named = esker::bench::figures_named(names, esker::bench::pipeline_figures());
  nlohmann::json report = esker::bench::provenance("pipeline");
  const esker::Device device = esker::Device::open(kinds[static_cast<std::size_t>(config.device)]);
  const bool is_on_gpu = device.backend() != esker::Backend::kCpu;
  if (bytes == 0) bytes = is_on_gpu ? 2'000'000'000 : 64'000'000;
  const esker::bench::PipelineBench bench{device, static_cast<std::uint32_t>(repeats), bytes,
                                          static_cast<std::uint32_t>(frames), keep};
  report["device"] = device.name();
  report["settings"] = {{"repeats", repeats}, {"bytes", bytes}, {"frames", frames}};
  return esker::bench::take_figures(named, bench, report, json, "esker-bench-pipeline");
} catch (const esker::UsageError& error) {
  usage(error.what());
} catch (const std::exception& error) {
  std::fprintf(stderr, "esker-bench-pipeline: %s\n", error.what());
  return 1;
}
