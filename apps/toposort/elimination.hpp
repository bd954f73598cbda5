// How rows leave a matrix that is upper triangular but for the order of its rows and columns.
//
// Invariant. A row with one entry left is a pivot: it leaves, with that entry's column. A row's level is more
// than those of the pivots whose columns it has had entries in. So a pivot has no entry in the column of
// another of its level or of one above, and in the order of falling levels the matrix is upper triangular.
// Levels depend on the matrix alone, not on the order in which messages arrive.
#pragma once

#include <cstdint>

#include <esker/containers.hpp>
#include <esker/esker.hpp>
#include <esker/lane.hpp>

#include "../sparse/matrix.hpp"

namespace toposort {

/// A handler's target: a row, or a column, whose members say nothing.
struct Node {
  std::uint64_t sum;    // of the columns of the entries that are left
  std::uint32_t count;  // of those entries
  std::uint32_t level;
};

/// Nodes of the rows of a PE, and then of its columns.
struct Nodes {
  esker::containers::Cyclic rows;  // columns, too
  esker::SymmetricArray<Node> nodes;

  ESKER_HD Node& row(std::uint64_t k) const { return nodes[k]; }
  ESKER_HD Node* row_target(std::uint64_t row) const { return &nodes[rows.local_index(row)]; }
  ESKER_HD Node* column_target(std::uint64_t column) const {
    return &nodes[rows.most() + rows.local_index(column)];
  }
  ESKER_HD std::uint64_t index(const Node& node) const {
    return static_cast<std::uint64_t>(&node - nodes.data());
  }
};

/// What a message says: to a column that row `index` is a pivot, of this level, with it; to a row that column
/// `index` has left with such a pivot.
struct From {
  std::uint64_t index;
  std::uint64_t level;
};
using Handler = esker::Handler<Node, From>;

/// A column whose pivot has told it, `column` as this PE counts its own.
struct Ready {
  std::uint64_t column;
  From pivot;
};

/// Columns that lanes take out, where handlers do not: a handler that sends a message for each entry of a
/// column may fill the queues that a GPU has for what handlers send, and here each sends one at most.
struct ReadyList {
  esker::SymmetricArray<Ready> columns;  // of none, where handlers do
  esker::SymmetricArray<std::uint64_t> length;

  ESKER_HD bool is_used() const { return columns.size() > 0; }
  ESKER_HD void add(const Ready& ready) const {
    auto& count = reinterpret_cast<esker::DeviceAtomic<std::uint64_t>&>(length[0]);
    columns[count.fetch_add_relaxed(1)] = ready;
  }
};

/// Tells the rows that have entries in a column of this PE that it has left.
template <class Sender>
ESKER_HD void take_out(Sender&& sender, Handler eliminate, const Nodes& nodes,
                       const sparse::Matrix& transposed, const Ready& ready) {
  const From from{nodes.rows.global_index(sender.pe(), ready.column), ready.pivot.level};
  for (std::uint64_t e = transposed.first[ready.column]; e < transposed.first[ready.column + 1]; ++e) {
    const std::uint64_t row = transposed.columns[e];
    if (row != ready.pivot.index)
      esker::shmem_am(sender, eliminate, nodes.row_target(row), from, nodes.rows.owner(row));
  }
}

/// What a pivot does.
template <class Sender>
ESKER_HD void tell_column(Sender&& sender, Handler eliminate, const Nodes& nodes, const Node& row,
                          std::uint64_t index) {
  const From from{nodes.rows.global_index(sender.pe(), index), row.level};
  esker::shmem_am(sender, eliminate, nodes.column_target(row.sum), from, nodes.rows.owner(row.sum));
}

/// Runs at a row's owner, for a column that has left, and at a column's, for its pivot.
struct Eliminate {
  static constexpr std::uint64_t kOwnershipBytes = sizeof(Node);
  Nodes nodes;
  sparse::Matrix transposed;
  ReadyList list;
  ESKER_HD void operator()(esker::HandlerContext& context, Node& node, const From& from, Handler self) const {
    const std::uint64_t index = nodes.index(node);
    if (index >= nodes.rows.most()) {
      const Ready ready{index - nodes.rows.most(), from};
      if (list.is_used()) return list.add(ready);
      return take_out(context, self, nodes, transposed, ready);
    }
    node.sum -= from.index;
    --node.count;
    if (node.level <= from.level) node.level = static_cast<std::uint32_t>(from.level) + 1;
    if (node.count == 1) tell_column(context, self, nodes, node, index);
  }
};

/// A lane adds up a row.
struct AddUp {
  sparse::Matrix matrix;
  Nodes nodes;
  ESKER_HD void operator()(esker::Lane lane) const {
    const std::uint64_t k = lane.global_id();
    Node node{0, static_cast<std::uint32_t>(matrix.first[k + 1] - matrix.first[k]), 0};
    for (std::uint64_t e = matrix.first[k]; e < matrix.first[k + 1]; ++e) node.sum += matrix.columns[e];
    nodes.row(k) = node;
  }
};

/// A lane looks whether its row is a pivot from the beginning. Other rows' counts may fall meanwhile, but not
/// those in `matrix`.
struct Begin {
  sparse::Matrix matrix;
  Nodes nodes;
  Handler eliminate;
  ESKER_HD void operator()(esker::WorkItem item) const {
    const std::uint64_t k = item.global_id();
    if (matrix.first[k + 1] - matrix.first[k] == 1) tell_column(item, eliminate, nodes, nodes.row(k), k);
  }
};

/// A lane takes out a column of the list.
struct TakeOut {
  Nodes nodes;
  sparse::Matrix transposed;
  Handler eliminate;
  ReadyList list;
  std::uint64_t first;
  ESKER_HD void operator()(esker::WorkItem item) const {
    take_out(item, eliminate, nodes, transposed, list.columns[first + item.global_id()]);
  }
};

/// A lane tells the column of its row, which is a pivot, where both are.
struct PlaceColumn {
  Nodes nodes;
  esker::containers::Array<std::uint64_t, esker::containers::Cyclic> row_places, column_places;
  ESKER_HD void operator()(esker::WorkItem item) const {
    const std::uint64_t k = item.global_id();
    column_places.put(item, nodes.row(k).sum, row_places.part()[k]);
  }
};

}  // namespace toposort
