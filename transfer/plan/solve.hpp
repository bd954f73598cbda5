// Which solver a graph takes.
#pragma once

#include <cstdint>
#include <span>

#include <esker/device/platform.hpp>
#include <esker/transfer/plan/schedule.hpp>

namespace esker::transfer {

/// kExact    the fewest startups: where each operand crosses once by schedule_exact(), else by
///           schedule_shared(), which for many operands gives a gap instead.
/// kGreedy, kTight    the paper's heuristic, schedule_by_affinity().
/// kUnfused  a startup a transfer.
enum class Solver { kExact, kGreedy, kTight, kUnfused };
/// "exact", "greedy", "tight", "unfused".
ESKER_API const char* to_string(Solver solver) noexcept;

struct SolveOptions {
  Solver solver = Solver::kExact;
  std::uint32_t attempts = 4;  // of the paper's heuristic
  std::uint64_t seed = 1;
};

/// Errors. As the solver that is asked for.
ESKER_API Schedule make_schedule(const OperandGraph& graph, std::span<const Transfer> transfers,
                                 const SolveOptions& options = {});

}  // namespace esker::transfer
