// The problem of schedule_shared(): storages with their transfers, to be put in a row.
#pragma once

#include <cstdint>
#include <vector>

#include <esker/transfer/plan/transfers.hpp>

namespace esker::transfer::detail {

/// When a transfer may happen, between which places: `lane` is a number for the pair.
struct Window {
  std::uint32_t lane, earliest, latest;
  std::uint32_t transfer;  // its position
};

/// A storage, with what crosses of it.
struct Item {
  std::uint32_t storage;
  std::vector<Window> windows;
};

/// Neighbours whose windows of one lane have a time in common go in one startup.
struct Run {
  std::uint32_t lane, earliest, latest;
  std::uint32_t first, count;  // places in the row
};

/// The runs of items in this row, joined greedily: the fewest where an item has one window a lane.
std::vector<Run> runs_of(const std::vector<const Item*>& row);

/// Whether a time is in both windows, or runs, of one lane.
template <class A, class B>
bool overlap(const A& a, const B& b) {
  return a.lane == b.lane && a.earliest <= b.latest && b.earliest <= a.latest;
}

/// The row with the fewest runs, and these. `best_known` is what a heuristic has found.
struct Row {
  std::vector<const Item*> items;
  std::vector<Run> runs;
};
Row search_row(const std::vector<Item>& items, const Row& best_known);
Row heuristic_row(const std::vector<Item>& items);

/// The fewest points that stab the windows of each lane: no row has fewer runs.
std::vector<std::uint32_t> least_runs_of_lanes(std::vector<Window> windows);
std::uint32_t least_runs(const std::vector<Item>& items);

}  // namespace esker::transfer::detail
