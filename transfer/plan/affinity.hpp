// The paper's heuristic: neighbours by affinity, Hamiltonian paths, then times, greedy or tight.
#pragma once

#include <cstdint>
#include <span>

#include <esker/device/platform.hpp>
#include <esker/transfer/plan/schedule.hpp>

namespace esker::transfer {

struct AffinityOptions {
  std::uint32_t attempts = 4;  // depth-first searches a component, of which the heaviest path is taken
  std::uint64_t seed = 1;
  bool tight = false;  // operands of one kernel go up as late as they can together
};

/// Section 4 as printed. The affinity of two operands is the number of directions in which their intervals
/// overlap, and the bonus where one kernel has both. Of each connected component some depth-first searches,
/// which prefer high affinity at random, give paths, of which the heaviest stands in memory. Then, in memory
/// order, greedy takes the longest run of neighbours that can share a time, at its earliest time.
///
/// What the paper leaves open is chosen so that its listings and the saving of its trees come out. Tight
/// gives two neighbours in memory that one kernel uses the latest upload that both can have, though their run
/// is cut. Downloads are greedy. A search that is stuck goes on from the last operand of its path that has a
/// neighbour left.
///
/// Errors. As schedule_exact().
ESKER_API Schedule schedule_by_affinity(const OperandGraph& graph, std::span<const Transfer> transfers,
                                        const AffinityOptions& options = {});

}  // namespace esker::transfer
