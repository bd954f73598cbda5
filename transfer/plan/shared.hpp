// Few startups where an operand is in several groups: changed in place, on several devices, or at an address.
#pragma once

#include <cstdint>
#include <span>

#include <esker/device/platform.hpp>
#include <esker/transfer/plan/schedule.hpp>

namespace esker::transfer {

/// So many storages that can share startups are ordered by search, more of them by a heuristic.
inline constexpr std::uint32_t kMostSearched = 12;

/// One memory order for all places. Storages that stand at addresses keep them: neighbours there are
/// neighbours in the order, and nothing else is put between. The others fall into sets which share no
/// startup. Each set of up to `most_searched` storages is ordered by branch and bound, which is exact; a
/// larger one by heavy edges of the graph of common groups and moves of stretches, with a gap to the bound
/// (Schedule::gap()).
ESKER_API Schedule schedule_shared(const OperandGraph& graph, std::span<const Transfer> transfers,
                                   std::uint32_t most_searched = kMostSearched);

}  // namespace esker::transfer
