// Bounded device memory: the fewest startups of a small graph, by branch and bound.
#pragma once

#include <cstdint>
#include <optional>

#include <esker/transfer/plan/bounded.hpp>

namespace esker::transfer::detail {

struct BoundedSearch {
  std::uint32_t bound = 0;              // no such schedule has fewer startups
  std::optional<BoundedSchedule> best;  // of less than `limit` startups; its layout fits
};

/// Over schedules in which an operand leaves the device only to make room, and nothing is moved that nobody
/// reads. Looks at up to `most_nodes` sets of absences of a graph of up to kMostSearched operands, of one
/// device and without versions, of which each kernel fits. `bound` is at most `limit`. Where the search comes
/// to its end, it is the fewest with which operands fit, whatever their order in memory and their layout.
BoundedSearch search_bounded(const OperandGraph& graph, std::uint64_t device_bytes, std::uint64_t alignment,
                             std::uint32_t limit, std::uint32_t most_nodes);

}  // namespace esker::transfer::detail
