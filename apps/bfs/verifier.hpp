// Whether what a search has found is a breadth-first search, by messages along all edges.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <esker/collectives.hpp>
#include <esker/esker.hpp>

#include "../graph/edge_traversal.hpp"
#include "../graph/list_runs.hpp"
#include "kernels.hpp"
#include "search.hpp"

namespace bfs {

/// What messages along edges have found, on this PE.
struct Findings {
  enum Name : std::uint64_t { kWrong, kConfirmed, kCount };
};

/// At the end of an edge that leaves a vertex that was reached: so was this one, by no more edges than one
/// more. If it was reached along this edge, that is confirmed.
struct Compare {
  static constexpr std::uint64_t kOwnershipBytes = 0;  // it counts by atomics, and changes nothing else
  esker::SymmetricArray<std::uint64_t> findings;
  ESKER_HD void operator()(esker::HandlerContext& /*context*/, Visit& mine, const Visit& other) const {
    const bool is_far = mine.depth == kNone || mine.depth > other.depth + 1;
    if (is_far) graph::reserve(findings[Findings::kWrong], 1);
    if (mine.parent == other.parent && mine.depth == other.depth + 1)
      graph::reserve(findings[Findings::kConfirmed], 1);
  }
};

/// A lane tells the ends of its edges which vertex the edge leaves, in place of a parent, and its depth.
struct CompareEdges {
  Lists lists;
  esker::SymmetricArray<std::uint32_t> targets;
  graph::EdgeTraversal traversal;
  esker::Handler<Visit, Visit> compare;
  ESKER_HD void operator()(esker::WorkItem item) const {
    for (auto state = traversal.begin(item.global_id());
         traversal.step(state) || traversal.next_row(state);) {
      const std::uint32_t depth = lists.visits[state.vertex].depth;
      if (depth == kNone) continue;
      const graph::Location at = lists.positions.place(targets[state.edge]);
      shmem_am(item, compare, &lists.visits[at.index()], {lists.position_of(state.vertex), depth}, at.pe());
    }
  }
};

/// The GAP benchmark suite's rules, without a serial search: the source is its own parent, at depth 0; every
/// other vertex that was reached has a parent, an edge away from it and at a depth less by one; no edge leads
/// from a vertex that was reached to one that was not, or to one deeper by more than one.
/// By the edges no depth is more than the distance; by the parents it is no less.
class Verifier {
 public:
  /// Collective.
  Verifier(esker::Runtime& rt, const graph::DistributedGraph& graph, const Rows& out, const Search& search)
      : rt_{rt},
        graph_{graph},
        out_{out},
        search_{search},
        findings_{rt.heap().allocate<std::uint64_t>(Findings::kCount)},
        compare_{rt.register_handler<Visit, Visit>("bfs-compare", Compare{findings_})} {}

  /// Collective. What is wrong on this PE.
  std::uint64_t count_wrong(std::uint32_t source) {
    const std::array<std::uint64_t, Findings::kCount> none{};
    rt_.heap().write(findings_, 0, std::span<const std::uint64_t>(none));
    esker::sync_all(rt_);  // nobody sends before that
    const graph::EdgeTraversal traversal(rt_, out_.first, graph_.my_vertices, graph_.my_edges);
    rt_.launch(traversal.lanes(), CompareEdges{search_.lists(), out_.others, traversal, compare_},
               "bfs-verify");
    rt_.barrier_all();

    const graph::Positions& positions = search_.lists().positions;
    const std::vector<Visit> visits = search_.visits();
    std::uint64_t wrong = 0, children = 0;
    for (std::uint64_t v = 0; v < visits.size(); ++v) {
      const bool is_source = positions.mine + v == source;
      const bool is_own_parent = visits[v].parent == positions.mine + v;
      wrong += is_source != is_own_parent || is_source != (visits[v].depth == 0) ? 1 : 0;
      wrong += (visits[v].parent == kNone) != (visits[v].depth == kNone) ? 1 : 0;
      children += visits[v].parent != kNone && !is_source ? 1 : 0;
    }
    std::array<std::uint64_t, Findings::kCount> found{};
    rt_.heap().read(findings_, 0, std::span<std::uint64_t>(found));
    // A vertex has one edge from its parent at most, so it is confirmed at most once.
    const std::uint64_t confirmed = found[Findings::kConfirmed];
    return wrong + found[Findings::kWrong] + std::max(children, confirmed) - std::min(children, confirmed);
  }

 private:
  esker::Runtime& rt_;
  const graph::DistributedGraph& graph_;
  const Rows out_;
  const Search& search_;
  esker::SymmetricArray<std::uint64_t> findings_;
  esker::Handler<Visit, Visit> compare_;
};

}  // namespace bfs
