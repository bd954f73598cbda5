// The figures that esker-bench-tasks takes, by name.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "sides.hpp"
#include "turns.hpp"

namespace esker::bench {

/// How large the problems are. Rivals that are slow have smaller ones, beside Esker at the same size.
struct Sizes {
  std::uint64_t fib = 0, queens = 0;                    // 0: as the device can
  std::uint64_t queue_fib = 27, queue_queens = 11;      // one queue in device memory
  std::uint64_t launch_fib = 17;                        // dynamic parallelism
  std::uint64_t channel_fib = 24, channel_queens = 10;  // Figures 4-15 and 4-16
  std::uint64_t speedup_fib = 0, speedup_queens = 0;    // Figure 4-13, and memory
  std::uint64_t sort = 0, speedup_sort = 0;             // words
  std::uint64_t strassen = 0, speedup_strassen = 0;     // rows of a matrix
  std::uint64_t strassen_cutoff = 0;                    // rows of blocks that are not divided
  std::uint64_t mandelbrot = 0;                         // pixels of a side
  std::uint64_t sptrsv = 0;                             // rows
  std::uint64_t stops = 100;                            // runs that are ended, of each kind
};

struct Bench {
  Device device;
  std::uint32_t threads;  // of a CPU; of a GPU all it holds
  Sizes sizes;
  Effort effort;

  bool is_on_gpu() const { return device.backend() != Backend::kCpu; }
  tasks::Options options() const {
    tasks::Options options;
    if (!is_on_gpu()) options.domains = threads;
    return options;
  }
  Problem strassen(std::uint64_t n) const {
    return {Kind::kStrassen, static_cast<std::uint32_t>(n),
            static_cast<std::uint32_t>(sizes.strassen_cutoff)};
  }
};

struct Figure {
  const char* name;
  const char* what;
  nlohmann::json (*take)(const Bench& bench);
};
/// All there are.
std::span<const Figure> figures();

// --- Parts of them.

/// Tasks of a run, by the recurrence or, of queens, counted by Esker.
std::uint64_t tasks_of(const Bench& bench, const Problem& problem);
/// What a run's report says.
nlohmann::json facts_of(const tasks::Report& report);
/// A run of a program with its checks, and the time of the run alone.
Outcome timed(Program& program);
/// A program as a side, with its report.
Side side_of(const std::string& name, const std::shared_ptr<Program>& program);
/// Esker as a side, named "esker" with `remark` behind it.
Side esker_side(const Bench& bench, const Problem& problem, const std::string& remark = "");
/// A line and a field "over_first" a side: its time over that of the first.
void add_ratios(nlohmann::json& turns);

nlohmann::json take_fib(const Bench& bench);
nlohmann::json take_queens(const Bench& bench);
nlohmann::json take_sort(const Bench& bench);
nlohmann::json take_strassen(const Bench& bench);
nlohmann::json take_mandelbrot(const Bench& bench);
nlohmann::json take_sptrsv(const Bench& bench);
nlohmann::json take_speedup(const Bench& bench);
nlohmann::json take_channels(const Bench& bench);
nlohmann::json take_widths(const Bench& bench);
nlohmann::json take_memory(const Bench& bench);
nlohmann::json take_overhead(const Bench& bench);
nlohmann::json take_stop(const Bench& bench);

}  // namespace esker::bench
