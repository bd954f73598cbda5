// The lower triangle L of a graph's adjacency matrix over all PEs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <esker/esker.hpp>

#include "../graph/distributed_graph.hpp"
#include "../graph/positions.hpp"
#include "../graph/prefix_sums.hpp"

namespace triangles {

/// A vertex as it is ordered: its rank in the upper half, its position in the lower.
using Key = std::uint64_t;
ESKER_HD inline std::uint32_t position_of(Key key) { return static_cast<std::uint32_t>(key); }

/// Encoding. The row of this PE's vertex v is keys[first[v]] to keys[first[v + 1] - 1]: its neighbours before
/// it in the order, ascending. So each undirected edge is in one row.
struct Rows {
  graph::Positions positions;
  esker::SymmetricArray<std::uint64_t> first;
  esker::SymmetricArray<Key> keys;
  std::uint64_t my_rows;
  std::uint64_t my_entries;
  std::uint64_t all_entries;
  std::uint64_t longest;  // row of any PE

  ESKER_HD bool contains(std::uint64_t row, Key key) const {
    std::uint64_t begin = first[row], end = first[row + 1];
    while (begin < end) {
      const std::uint64_t middle = begin + (end - begin) / 2;
      if (keys[middle] == key) return true;
      if (keys[middle] < key) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    return false;
  }
};

/// Elements that two ascending lists have both.
ESKER_HD inline std::uint64_t common(const Key* a, const Key* a_end, const Key* b, const Key* b_end) {
  std::uint64_t count = 0;
  while (a != a_end && b != b_end) {
    const Key left = *a, right = *b;
    count += left == right ? 1 : 0;
    a += left <= right ? 1 : 0;
    b += right <= left ? 1 : 0;
  }
  return count;
}

/// A lane asks for the degree of the vertex that one of the edges from `begin` on leads to.
struct AskDegree {
  esker::SymmetricArray<graph::Edge> edges;
  esker::SymmetricArray<std::uint32_t> degrees, of_ends;
  std::uint64_t begin;
  ESKER_HD void operator()(esker::WorkItem item) const {
    const graph::Location to = edges[begin + item.global_id()].to;
    shmem_get(item, &of_ends[item.global_id()], &degrees[to.index()], to.pe());
  }
};

/// Makes Rows, in two passes over this PE's edges, so that no list of entries stands beside the heap's.
class RowMaker {
 public:
  /// Collective.
  RowMaker(esker::Runtime& rt, const graph::DistributedGraph& graph, bool by_degree)
      : rt_{rt},
        graph_{graph},
        by_degree_{by_degree},
        positions_{graph::make_positions(rt, graph)},
        first_{graph::read_first(rt, graph.first, graph.my_vertices)},
        degrees_{rt.heap().allocate<std::uint32_t>(graph.most_vertices + 1)},
        of_ends_{rt.heap().allocate<std::uint32_t>(graph::kChunkEdges)} {
    std::vector<std::uint32_t> mine(graph.my_vertices);
    for (std::uint64_t v = 0; v < mine.size(); ++v) mine[v] = degree_of(v);
    rt.heap().write(degrees_, 0, std::span<const std::uint32_t>(mine));
    rt.barrier_all();  // everybody's are there
  }

  /// Collective, once.
  Rows make() {
    std::vector<std::uint64_t> first{0};
    std::uint64_t longest = 0;
    for_each_row([&](std::span<const Key> row) {
      first.push_back(first.back() + row.size());
      longest = std::max(longest, row.size());
    });
    auto& heap = rt_.heap();
    const auto keys = heap.allocate_largest<Key>(std::max<std::uint64_t>(1, first.back()));
    std::vector<Key> some;
    std::uint64_t written = 0;
    const auto write = [&] {
      heap.write(keys, written, std::span<const Key>(some));
      written += some.size();
      some.clear();
    };
    for_each_row([&](std::span<const Key> row) {
      some.insert(some.end(), row.begin(), row.end());
      if (some.size() >= graph::kChunkEdges) write();
    });
    write();
    rt_.barrier_all();  // nobody asks for degrees any more
    heap.free(of_ends_);
    heap.free(degrees_);
    const auto on_heap = heap.allocate<std::uint64_t>(graph_.most_vertices + 1);
    heap.write(on_heap, 0, std::span<const std::uint64_t>(first));
    std::array<std::uint64_t, 1> all{first.back()}, most{longest};
    rt_.all_reduce(std::span<std::uint64_t>(all), esker::Reduction::kSum);
    rt_.all_reduce(std::span<std::uint64_t>(most), esker::Reduction::kMax);
    return {positions_, on_heap, keys, graph_.my_vertices, first.back(), all[0], most[0]};
  }

 private:
  std::uint32_t degree_of(std::uint64_t v) const {
    return static_cast<std::uint32_t>(first_[v + 1] - first_[v]);
  }
  Key key_of(graph::Location at, std::uint32_t degree) const {
    const std::uint64_t rank = by_degree_ ? ~degree : graph_.partition.global_id(at.pe(), at.index());
    return (rank & 0xffffffff) << 32 | positions_.of(at);
  }

  /// Calls visit(row) for each of this PE's vertices, in their order.
  template <class Visit>
  void for_each_row(const Visit& visit) {
    std::uint64_t v = 0;
    Key mine = 0;
    std::vector<Key> row;
    const auto begin_row = [&] {
      if (v < graph_.my_vertices) mine = key_of({rt_.pe(), v}, degree_of(v));
    };
    const auto end_rows = [&](std::uint64_t edge) {  // those that have no edge from `edge` on
      while (v < graph_.my_vertices && first_[v + 1] <= edge) {
        std::sort(row.begin(), row.end());
        visit(std::span<const Key>(row));
        row.clear();
        ++v;
        begin_row();
      }
    };
    begin_row();
    std::vector<std::uint32_t> degrees(graph::kChunkEdges);
    graph::for_each_chunk(rt_, graph_, [&](std::uint64_t begin, std::span<const graph::Edge> edges) {
      if (by_degree_) {
        rt_.launch(edges.size(), AskDegree{graph_.edges, degrees_, of_ends_, begin}, "triangles-degrees");
        rt_.quiet();
        rt_.heap().read(of_ends_, 0, std::span(degrees).first(edges.size()));
      }
      for (std::size_t i = 0; i < edges.size(); ++i) {
        end_rows(begin + i);
        if (const Key other = key_of(edges[i].to, degrees[i]); other < mine) row.push_back(other);
      }
    });
    end_rows(first_.back());
  }

  esker::Runtime& rt_;
  const graph::DistributedGraph& graph_;
  const bool
      by_degree_;  // vertices with more edges come first, so that no row is longer than the square root of
                   // twice the number of edges; else vertices are in order of their ids, as bale has them
  const graph::Positions positions_;
  const std::vector<std::uint64_t> first_;
  esker::SymmetricArray<std::uint32_t> degrees_, of_ends_;
};

}  // namespace triangles
