// A breadth-first search, level by level, down edges or up (Beamer, Asanović, Patterson, SC 2012).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <esker/collectives.hpp>
#include <esker/esker.hpp>

#include "../graph/distributed_graph.hpp"
#include "../graph/list_runs.hpp"
#include "../graph/positions.hpp"
#include "../graph/prefix_sums.hpp"
#include "../styles/superstep.hpp"
#include "kernels.hpp"

namespace bfs {

/// When steps go up, as in the GAP benchmark suite: from a step on before which the frontier has more than
/// 1 / alpha of the edges that have not been gone along, and for as long as the frontier grows or has more
/// than 1 / beta of the vertices.
struct Direction {
  bool may_go_up;
  std::uint64_t alpha, beta;
};

/// The edges of this PE's vertices, row by row, by the positions of their other ends.
struct Rows {
  esker::SymmetricArray<std::uint64_t> first;
  esker::SymmetricArray<std::uint32_t> others;
};

/// Contract. run(), collective, as often as you like.
///
/// Levels. Between them `begin_` to `end_` is the frontier in the queue. A step down reaches this PE's
/// vertices without messages; PEs then meet in one reduction, and only where some PE has found vertices of
/// others does a superstep tell their owners: one message a vertex and PE that has found it, in the whole
/// search. A step up needs the whole frontier, a bit a vertex, which all PEs gather after each. Other PEs'
/// messages arrive in that superstep and at no other time: whoever sends them has been in a reduction that
/// this PE has entered after it had done with the step.
class Search {
 public:
  /// `in` has the edges into this PE's vertices, of an undirected graph `out`; where no step goes up,
  /// anything.
  Search(esker::Runtime& rt, const graph::DistributedGraph& graph, const graph::Positions& positions,
         const Rows& out, const Rows& in, Direction direction)
      : rt_{rt}, graph_{graph}, out_{out}, in_{in}, direction_{direction} {
    const auto of_positions = [&] { return Bits{rt.heap().allocate<std::uint64_t>(positions.count / 64)}; };
    // Of other PEs' vertices, those that an edge of this PE leads to, each once.
    const std::uint64_t remote =
        std::min<std::uint64_t>(positions.count - positions.stride, out.others.size());
    lists_ = {positions,
              rt.heap().allocate<Visit>(positions.stride),
              of_positions(),
              rt.heap().allocate<std::uint32_t>(graph.most_vertices + 1),
              rt.heap().allocate<Remote>(remote + 1),
              graph::EdgeChunks<std::uint32_t>::allocate(rt, graph,
                                                         graph::EdgeChunks<std::uint32_t>::kMostOnDevice),
              rt.heap().allocate<std::uint64_t>(Lists::kLengths)};
    unreachable_ = rt.heap().allocate<std::uint64_t>(positions.stride / 64);
    if (direction.may_go_up) {
      frontier_ = of_positions();
      next_ = {rt.heap().allocate<std::uint64_t>(positions.stride / 64)};
    }
    reach_ = rt.register_handler<Visit, Visit>("bfs-reach", Reach{lists_});
    look_at_degrees();
  }

  const Lists& lists() const { return lists_; }
  /// Of the last run.
  std::uint64_t steps() const { return steps_; }
  std::uint64_t steps_up() const { return steps_up_; }

  /// From a vertex, by its position.
  void run(styles::Superstep& superstep, std::uint32_t source) {
    start(source);
    std::uint64_t unexplored = graph_.all_edges;
    std::uint64_t frontier = 1;  // vertices of all PEs, or more: those that several have found count often
    bool has_gone_up = false;
    for (steps_ = steps_up_ = 0;;) {
      if (!has_gone_up && should_go_up(frontier, unexplored)) {
        if (!go_up()) return;
        has_gone_up = true;  // the next step goes down in any case
        continue;
      }
      has_gone_up = false;
      const Step step = go_down(superstep);
      if (step.reached == 0) return;
      unexplored -= step.edges;
      frontier = step.reached;
    }
  }

  std::vector<Visit> visits() const {
    std::vector<Visit> mine(graph_.my_vertices);
    rt_.heap().read(lists_.visits, 0, std::span(mine));
    return mine;
  }

 private:
  static constexpr std::uint64_t kHostTells = 256;  // of a lane
  using Lengths = std::array<std::uint64_t, Lists::kLengths>;
  struct Step {
    std::uint64_t reached, edges;  // of all PEs: vertices, as `frontier` counts them; edges gone along
  };

  Lengths read_lengths() const {
    Lengths lengths;
    rt_.heap().read(lists_.lengths, 0, std::span<std::uint64_t>(lengths));
    return lengths;
  }
  void write_lengths(const Lengths& lengths) {
    rt_.heap().write(lists_.lengths, 0, std::span<const std::uint64_t>(lengths));
  }

  /// Collective. Vertices that no edge leads to need not be looked up from.
  void look_at_degrees() {
    const auto in = graph::read_first(rt_, in_.first, graph_.my_vertices);
    std::vector<std::uint64_t> words(unreachable_.size(), ~std::uint64_t{0});
    for (std::uint64_t v = 0; v < graph_.my_vertices; ++v) {
      if (!direction_.may_go_up || in[v + 1] > in[v]) words[v / 64] &= ~(std::uint64_t{1} << v % 64);
    }
    rt_.heap().write(unreachable_, 0, std::span<const std::uint64_t>(words));
    const auto out = graph::read_first(rt_, out_.first, graph_.my_vertices);
    std::array<std::uint64_t, 1> most{0};
    for (std::uint64_t v = 0; v < graph_.my_vertices; ++v) most[0] = std::max(most[0], out[v + 1] - out[v]);
    rt_.all_reduce(std::span<std::uint64_t>(most), esker::Reduction::kMax);
    most_edges_ = most[0];
  }

  void start(std::uint32_t source) {
    const bool is_here = lists_.positions.is_mine(source);
    Lengths lengths{};
    lengths[Lists::kQueue] = is_here ? 1 : 0;
    write_lengths(lengths);
    graph::launch_runs(rt_, lists_.seen.words.size(), "bfs-start", [&]<std::uint64_t kRun>() {
      return Start<kRun>{lists_, unreachable_, source};
    });
    begin_ = end_ = 0;
    take_frontier(read_lengths());
  }

  /// What has been added to the queue is the frontier from now on.
  void take_frontier(Lengths lengths) {
    begin_ = end_;
    end_ = lengths[Lists::kQueue];
    chunks_ = frontier_edges_ = 0;
    lengths[Lists::kRemote] = lengths[Lists::kChunks] = lengths[Lists::kEdges] = 0;
    write_lengths(lengths);
    if (begin_ == end_) return;
    graph::launch_runs(rt_, end_ - begin_, "bfs-take", [&]<std::uint64_t kRun>() {
      return Take<kRun>{lists_, begin_, end_ - begin_};
    });
    lengths = read_lengths();
    chunks_ = lengths[Lists::kChunks];
    frontier_edges_ = lengths[Lists::kEdges];
  }

  /// Collective. `frontier` vertices have no more edges than most_edges_ each, which mostly is answer enough.
  bool should_go_up(std::uint64_t frontier, std::uint64_t unexplored) {
    if (!direction_.may_go_up) return false;
    const auto most = static_cast<double>(frontier) * static_cast<double>(most_edges_);
    if (most <= static_cast<double>(unexplored / direction_.alpha)) return false;
    std::array<std::uint64_t, 1> edges{frontier_edges_};
    rt_.all_reduce(std::span<std::uint64_t>(edges), esker::Reduction::kSum);
    return edges[0] > unexplored / direction_.alpha;
  }

  /// Collective.
  Step go_down(styles::Superstep& superstep) {
    const auto depth = static_cast<std::uint32_t>(++steps_);
    if (chunks_ > 0) {
      graph::launch_runs(rt_, chunks_, "bfs-expand", [&]<std::uint64_t kRun>() {
        return Expand<kRun>{lists_, out_.others, chunks_, depth};
      });
    }
    Lengths lengths = read_lengths();
    const std::uint64_t remote = lengths[Lists::kRemote];
    std::array<std::uint64_t, 3> all{remote, lengths[Lists::kQueue] - end_, frontier_edges_};
    rt_.all_reduce(std::span<std::uint64_t>(all), esker::Reduction::kSum);
    if (all[0] > 0) {
      const std::uint64_t per_lane = rt_.runs_on_device() ? 1 : kHostTells;
      superstep.run((remote + per_lane - 1) / per_lane, Tell{lists_, reach_, remote, per_lane, depth}, "bfs");
      lengths = read_lengths();
    }
    take_frontier(lengths);
    return {all[0] + all[1], all[2]};
  }

  /// Collective. Several steps; false: the search has ended.
  bool go_up() {
    std::array<std::uint64_t, 1> awake{end_ - begin_};
    if (awake[0] > 0) {
      graph::launch_runs(rt_, end_ - begin_, "bfs-mark", [&]<std::uint64_t kRun>() {
        return Mark<kRun>{lists_, next_, begin_, end_ - begin_};
      });
    }
    rt_.all_reduce(std::span<std::uint64_t>(awake), esker::Reduction::kSum);
    share_frontier();
    for (bool goes_on = true; goes_on;) {
      const std::uint64_t before = awake[0];
      ++steps_up_;
      const auto depth = static_cast<std::uint32_t>(++steps_);
      Lengths lengths = read_lengths();
      lengths[Lists::kAwake] = 0;
      write_lengths(lengths);
      graph::launch_runs(rt_, graph_.my_vertices, "bfs-look-up", [&]<std::uint64_t kRun>() {
        return LookUp<kRun>{lists_, frontier_, next_, in_.first, in_.others, graph_.my_vertices, depth};
      });
      awake[0] = read_lengths()[Lists::kAwake];
      rt_.all_reduce(std::span<std::uint64_t>(awake), esker::Reduction::kSum);
      share_frontier();
      goes_on = awake[0] >= before || awake[0] > graph_.partition.vertices() / direction_.beta;
    }
    end_ = read_lengths()[Lists::kQueue];
    graph::launch_runs(rt_, next_.words.size(), "bfs-enqueue", [&]<std::uint64_t kRun>() {
      return Enqueue<kRun>{lists_, frontier_, next_.words.size()};
    });
    take_frontier(read_lengths());
    return awake[0] > 0;
  }

  /// Collective. What PEs have marked is the frontier, and has been seen by all.
  void share_frontier() {
    esker::all_gather(rt_, next_.words, frontier_.words);
    graph::launch_runs(rt_, frontier_.words.size(), "bfs-note", [&]<std::uint64_t kRun>() {
      return Note<kRun>{lists_.seen, frontier_, next_.words};
    });
  }

  esker::Runtime& rt_;
  const graph::DistributedGraph& graph_;
  const Rows out_, in_;
  const Direction direction_;
  Lists lists_;
  esker::SymmetricArray<std::uint64_t> unreachable_;  // bits of this PE's vertices
  Bits frontier_, next_;                              // of all PEs; of this PE's vertices
  esker::Handler<Visit, Visit> reach_;
  std::uint64_t most_edges_ = 0;       // of a vertex of any PE
  std::uint64_t begin_ = 0, end_ = 0;  // the frontier in the queue
  std::uint64_t chunks_ = 0;           // of its edges
  std::uint64_t frontier_edges_ = 0;
  std::uint64_t steps_ = 0, steps_up_ = 0;
};

}  // namespace bfs
