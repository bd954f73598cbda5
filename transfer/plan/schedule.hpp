// What every solver gives: an order of operands in memory, and the copies that move neighbours together.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <esker/device/platform.hpp>
#include <esker/transfer/plan/operand_graph.hpp>
#include <esker/transfer/plan/transfers.hpp>

namespace esker::transfer {

/// One copy: the operands at `first` to `first + count - 1` in memory order, before kernel `time`, or after
/// it where it goes to the host.
struct Startup {
  std::uint16_t from, to;
  std::uint32_t time;
  std::uint32_t first, count;

  bool is_upload() const { return to != 0; }
};

/// Contract. `order` has the storage of each operand once (OperandGraph::storage()). Startups are in program
///           order, and each transfer is in one of them.
struct Schedule {
  std::vector<std::uint32_t> order;
  std::vector<Startup> startups;
  std::uint32_t transfers = 0;    // startups without fusion
  std::uint32_t lower_bound = 0;  // no order and no times need fewer startups
  /// Transfers, by their positions in transfers_of(), of which no two can share a startup. It proves
  /// `lower_bound` where it has as many members; a search may have proved more.
  std::vector<std::uint32_t> certificate;

  std::uint32_t saved() const { return transfers - static_cast<std::uint32_t>(startups.size()); }
  std::uint32_t gap() const { return static_cast<std::uint32_t>(startups.size()) - lower_bound; }
};

/// Each operand by itself, as the paper's baseline: up at the latest time, down after the last kernel of the
/// device that uses it, or when the host needs it.
ESKER_API Schedule schedule_unfused(const OperandGraph& graph, std::span<const Transfer> transfers);

/// Refuses a schedule that is not one of this graph.
///
/// Errors. Error{kTransfer}: an operand that stands in memory twice or not at all, a startup that moves what
///         is not to be moved, or at a wrong time, a transfer that is in none or in two.
ESKER_API void check_schedule(const OperandGraph& graph, std::span<const Transfer> transfers,
                              const Schedule& schedule);

/// Sorts startups into program order: by time, what comes before a kernel before what comes after it.
ESKER_API void sort_startups(std::vector<Startup>& startups);

/// The program with its transfers, a line each, as the paper's section 4 prints it.
ESKER_API std::string listing(const OperandGraph& graph, const Schedule& schedule);

}  // namespace esker::transfer
