// What the figures of esker-bench-pipeline share.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <esker/device.hpp>
#include <esker/pipeline.hpp>

namespace esker::bench {

struct PipelineBench {
  Device device;
  std::uint32_t repeats;
  std::uint64_t bytes;   // that a run moves each way, about
  std::uint32_t frames;  // of a topic
  bool keep;             // the result of `crossing`, for this machine
  bool is_on_gpu() const { return device.backend() != Backend::kCpu; }
};

struct PipelineFigure {
  const char* name;
  const char* what;
  nlohmann::json (*take)(const PipelineBench& bench);
};
std::span<const PipelineFigure> pipeline_figures();

/// Runs that are compared: each verifies, and returns seconds. They take turns; the first one is not timed.
struct PipelineSide {
  std::string name;
  std::function<double()> run;
};
/// A line a side: `units` over its median time. {name: {median_s, min_s, max_s, rate}}; a side that throws
/// has {error}.
nlohmann::json take_turns(const PipelineBench& bench, const std::string& what,
                          const std::vector<PipelineSide>& sides, double units, const std::string& unit);

nlohmann::json take_ping_pong(const PipelineBench& bench);
nlohmann::json take_crossing(const PipelineBench& bench);
nlohmann::json take_latency(const PipelineBench& bench);
nlohmann::json take_chains(const PipelineBench& bench);
nlohmann::json take_end(const PipelineBench& bench);
nlohmann::json take_division(const PipelineBench& bench);
nlohmann::json take_contention(const PipelineBench& bench);
nlohmann::json take_breakdown(const PipelineBench& bench);
nlohmann::json take_workloads(const PipelineBench& bench);
nlohmann::json take_rounds(const PipelineBench& bench);
nlohmann::json take_invocations(const PipelineBench& bench);
nlohmann::json take_tuning(const PipelineBench& bench);
nlohmann::json take_programs(const PipelineBench& bench);
nlohmann::json take_tbb(const PipelineBench& bench);

}  // namespace esker::bench
