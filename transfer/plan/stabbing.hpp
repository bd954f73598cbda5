// The fewest startups where each operand crosses at most once: fewest points that stab all intervals.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <esker/device/platform.hpp>
#include <esker/transfer/plan/schedule.hpp>

namespace esker::transfer {

/// The schedule with the fewest startups, and of those one with short lifetimes on devices: uploads go at the
/// last of its times, downloads at the first.
///
/// Earliest deadline first: the transfer with the earliest `latest` needs a startup by then; at that time it
/// serves all that may go then, so nothing is lost. The transfers that asked for a new startup are pairwise
/// disjoint in time, which is the certificate. Any grouping can be laid out: an operand that crosses once is
/// in one group, so groups stand in memory one after the other. docs/design/transfers-plans.md has the proof.
///
/// O(n log n) in the number of transfers.
/// Errors. Error{kTransfer}: an operand that crosses more than once (versions in place, several devices), or
///         that stands at an address. make_schedule() takes those.
ESKER_API Schedule schedule_exact(const OperandGraph& graph, std::span<const Transfer> transfers);

/// A largest set of transfers of which no two can share a startup, by position: a lower bound for any order.
ESKER_API std::vector<std::uint32_t> disjoint_transfers(std::span<const Transfer> transfers);

/// A time for each transfer, with as many in all as disjoint_transfers() has: uploads go at the last that
/// they can, downloads at the first. Which of one time can share a startup is a matter of the order in
/// memory.
ESKER_API std::vector<std::uint32_t> stabbing_times(std::span<const Transfer> transfers);

/// Whether schedule_exact() takes the graph.
ESKER_API bool crosses_once(const OperandGraph& graph, std::span<const Transfer> transfers);

}  // namespace esker::transfer
