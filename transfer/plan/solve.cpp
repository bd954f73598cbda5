// Which solver a graph takes.
#include <esker/transfer/plan/affinity.hpp>
#include <esker/transfer/plan/shared.hpp>
#include <esker/transfer/plan/solve.hpp>
#include <esker/transfer/plan/stabbing.hpp>

namespace esker::transfer {

const char* to_string(Solver solver) noexcept {
  switch (solver) {
    case Solver::kExact:
      return "exact";
    case Solver::kGreedy:
      return "greedy";
    case Solver::kTight:
      return "tight";
    case Solver::kUnfused:
      return "unfused";
  }
  return "unknown";
}

Schedule make_schedule(const OperandGraph& graph, std::span<const Transfer> transfers,
                       const SolveOptions& options) {
  switch (options.solver) {
    case Solver::kExact:
      break;
    case Solver::kGreedy:
    case Solver::kTight:
      return schedule_by_affinity(
          graph, transfers,
          {.attempts = options.attempts, .seed = options.seed, .tight = options.solver == Solver::kTight});
    case Solver::kUnfused:
      return schedule_unfused(graph, transfers);
  }
  return crosses_once(graph, transfers) ? schedule_exact(graph, transfers)
                                        : schedule_shared(graph, transfers);
}

}  // namespace esker::transfer
