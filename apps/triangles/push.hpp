// Triangles by active messages: a row sends its pairs to the owner of the later one's row.
#pragma once

#include <cstdint>

#include <esker/esker.hpp>
#include <esker/lane.hpp>

#include "../graph/edge_traversal.hpp"
#include "../graph/list_runs.hpp"
#include "../styles/message.hpp"
#include "rows.hpp"

namespace triangles {

/// At the owner of a row: does it have the key? A count for each row; the sum over all is what is wanted.
struct LookFor {
  static constexpr std::uint64_t kOwnershipBytes = 0;  // it adds by an atomic
  Rows rows;
  esker::SymmetricArray<std::uint64_t> counts;
  ESKER_HD void operator()(esker::HandlerContext& /*context*/, std::uint64_t& count, const Key& key) const {
    if (rows.contains(static_cast<std::uint64_t>(&count - counts.data()), key)) graph::reserve(count, 1);
  }
};

/// Adds the triangles of an entry whose row is this PE's too: those entries before it that its row has.
ESKER_HD inline void count_own(const Rows& rows, esker::SymmetricArray<std::uint64_t> counts,
                               std::uint64_t row, std::uint64_t entry) {
  const std::uint64_t other = rows.positions.place(position_of(rows.keys[entry])).index();
  const Key* const keys = rows.keys.data();
  const std::uint64_t found =
      common(keys + rows.first[row], keys + entry, keys + rows.first[other], keys + rows.first[other + 1]);
  if (found > 0) graph::reserve(counts[row], found);
}

/// A lane takes entries, and for each sends the ones before it in its row to the owner of the entry's own
/// row.
struct PushPairs {
  using Message = styles::Call<std::uint64_t, Key>;
  struct State {
    graph::EdgeTraversal::State at;
    std::uint64_t next;  // of those before entry at.edge; from there on there are none left
  };
  Rows rows;
  esker::SymmetricArray<std::uint64_t> counts;
  graph::EdgeTraversal traversal;  // of entries
  esker::Handler<std::uint64_t, Key> look_for;

  ESKER_HD State start(std::uint64_t id) const { return {traversal.begin(id), ~std::uint64_t{0}}; }
  ESKER_HD bool next(State& state, Message& message) const {
    while (state.next >= state.at.edge || state.next == ~std::uint64_t{0}) {
      if (!traversal.step(state.at) && !traversal.next_row(state.at)) return false;
      state.next = rows.first[state.at.vertex];
      if (!rows.positions.is_mine(position_of(rows.keys[state.at.edge]))) continue;
      count_own(rows, counts, state.at.vertex, state.at.edge);
      state.next = state.at.edge;
    }
    const graph::Location row = rows.positions.place(position_of(rows.keys[state.at.edge]));
    message = {&counts[row.index()], row.pe(), look_for, rows.keys[state.next++]};
    return true;
  }
};

/// The same without those that are other PEs'.
struct CountOwn {
  Rows rows;
  esker::SymmetricArray<std::uint64_t> counts;
  graph::EdgeTraversal traversal;
  ESKER_HD void operator()(esker::Lane lane) const {
    for (auto state = traversal.begin(lane.global_id());
         traversal.step(state) || traversal.next_row(state);) {
      if (rows.positions.is_mine(position_of(rows.keys[state.edge])))
        count_own(rows, counts, state.vertex, state.edge);
    }
  }
};

}  // namespace triangles
