// The iterations of PageRank on one PE.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <esker/esker.hpp>

#include "../graph/distributed_graph.hpp"
#include "../graph/edge_slots.hpp"
#include "../graph/prefix_sums.hpp"
#include "../styles/superstep.hpp"
#include "kernels.hpp"

namespace pagerank {

/// How ranks come from ranks.
struct Sweep {
  bool in_place;         // from what there is by now (Gauss-Seidel); else from the iteration before (Jacobi)
  bool by_edge;          // a slot and a put for each edge, which goes with Jacobi
  std::uint64_t phases;  // of an iteration; after each, mirrors get what it has made
};

/// Contract. run() after prepare(); both are collective.
///
/// State. Between iterations `ranks` has this PE's ranks and `shares_[now_]` their shares; its mirrors have
/// the others' of before the last phase. Jacobi's iterations take turns with two arrays: own shares are
/// written while others of the PE read those of the iteration before.
class Ranking {
 public:
  Ranking(esker::Runtime& rt, const graph::DistributedGraph& graph, Sweep sweep)
      : rt_{rt},
        graph_{graph},
        sweep_{sweep},
        ranks_{rt.heap().allocate<float>(graph.most_vertices)},
        per_edge_{rt.heap().allocate<float>(graph.most_vertices)},
        sums_{rt.heap().allocate<Sums>(kMostParts)} {
    std::uint64_t size = graph.most_vertices + 1;
    if (sweep.by_edge) {
      slots_of_edges_.emplace(graph::make_edge_slots(rt, graph));
      slots_ = rt.heap().allocate<float>(slots_of_edges_->most);
      traversal_.emplace(rt, graph.first, graph.my_vertices, graph.my_edges);
      traversal_->remember_vertices(rt);
      first_in_ = slots_of_edges_->first;
    } else {
      mirrors_.emplace(graph::make_mirrors(rt, graph));
      first_in_ = mirrors_->first_in;
      size = mirrors_->size;
    }
    for (int i = 0; i < (sweep.in_place ? 1 : 2); ++i)
      runs_[i] = rt.heap().allocate<Run>((size + graph::Mirrors::kRun - 1) / graph::Mirrors::kRun);
    if (sweep.in_place) runs_[1] = runs_[0];
    count_edges();
    choose_phases(graph::read_first(rt, first_in_, graph.my_vertices));
  }

  /// Puts of an iteration, of all PEs, and what they keep for themselves.
  std::uint64_t accesses() const {
    return sweep_.by_edge ? graph_.all_edges : mirrors_->runs_of_all + graph_.partition.vertices();
  }

  void prepare() {
    std::vector<float> start(graph_.my_vertices, static_cast<float>(1 / vertices()));
    rt_.heap().write(ranks_, 0, std::span<const float>(start));
    std::vector<float> per_edge(graph_.my_vertices);
    rt_.heap().read(per_edge_, 0, std::span(per_edge));
    for (std::uint64_t v = 0; v < start.size(); ++v) start[v] *= per_edge[v];
    now_ = 0;
    rt_.heap().write(shares(now_), 0, std::span<const float>(start));
  }

  /// Returns how many iterations it made: at most `most`, and none after one in which the ranks together have
  /// changed by no more than `tolerance`, if that is not 0.
  std::uint64_t run(styles::Superstep& superstep, std::uint64_t most, double tolerance) {
    std::uint64_t done = 0;
    double dangling = dangling_at_start_;
    const Phase everything{0, graph_.my_vertices, 0, mirrors_ ? mirrors_->last.size() : 0, 0, 0};
    for (bool is_far = true; done < most && is_far; ++done) {
      const double base = (1 - kDamping + kDamping * dangling) / vertices();
      double all[2] = {};  // dangling, change
      for (std::size_t p = 0; p < phases_.size(); ++p) {
        const bool is_first = done == 0 && p == 0;
        push(superstep, is_first ? everything : phases_[(p == 0 ? phases_.size() : p) - 1]);
        const Sums sums = gather(phases_[p], base);
        all[0] += sums.dangling;
        all[1] += sums.change;
      }
      if (!sweep_.in_place) now_ = 1 - now_;
      rt_.all_reduce(std::span<double>(all), esker::Reduction::kSum);
      dangling = all[0];
      last_change_ = all[1];
      is_far = tolerance == 0 || last_change_ > tolerance;
    }
    return done;
  }

  /// Of all ranks together, in the last iteration.
  double last_change() const { return last_change_; }

  std::vector<double> ranks() const {
    std::vector<float> mine(graph_.my_vertices);
    rt_.heap().read(ranks_, 0, std::span(mine));
    return {mine.begin(), mine.end()};
  }

 private:
  static constexpr std::uint64_t kMostParts = 1024;    // lanes of a CPU, groups of a GPU: as many as it holds
  static constexpr std::uint32_t kHostGroupLanes = 8;  // some groups a thread
  static constexpr std::uint64_t kLeastBlock = 64;     // edges
  static constexpr std::uint64_t kHostRuns = 256;      // of a lane

  /// Some vertices, those runs that they complete, and their hubs' blocks.
  struct Phase {
    std::uint64_t begin, end;
    std::uint64_t begin_run, end_run;
    std::uint64_t begin_block, end_block;
  };

  double vertices() const { return static_cast<double>(graph_.partition.vertices()); }
  esker::SymmetricArray<float> shares(int i) const {
    return {reinterpret_cast<float*>(runs_[i].data()), runs_[i].size() * graph::Mirrors::kRun};
  }

  /// Collective.
  void count_edges() {
    const auto first = graph::read_first(rt_, graph_.first, graph_.my_vertices);
    std::vector<float> per_edge(graph_.my_vertices);
    double all[1] = {0};
    for (std::uint64_t v = 0; v < graph_.my_vertices; ++v) {
      const std::uint64_t edges = first[v + 1] - first[v];
      per_edge[v] = edges == 0 ? 0.0F : 1 / static_cast<float>(edges);
      all[0] += edges == 0 ? 1 : 0;
    }
    rt_.heap().write(per_edge_, 0, std::span<const float>(per_edge));
    rt_.all_reduce(std::span<double>(all), esker::Reduction::kSum);
    dangling_at_start_ = all[0] / vertices();
  }

  /// Collective. Phases have equally many edges into their vertices.
  void choose_phases(const std::vector<std::uint64_t>& first) {
    const std::vector<std::uint64_t> blocks =
        rt_.runs_on_device() ? choose_blocks(first) : std::vector<std::uint64_t>();
    const auto before = [](const auto& sorted, std::uint64_t value) {
      return static_cast<std::uint64_t>(std::lower_bound(sorted.begin(), sorted.end(), value) -
                                        sorted.begin());
    };
    Phase phase{};
    for (std::uint64_t p = 1; p <= sweep_.phases; ++p) {
      const bool is_last = p == sweep_.phases;
      phase.begin = std::exchange(
          phase.end, is_last ? graph_.my_vertices : before(first, first.back() * p / sweep_.phases));
      phase.end = std::min(phase.end, graph_.my_vertices);
      phase.begin_run = std::exchange(phase.end_run, mirrors_ ? before(mirrors_->last, phase.end) : 0);
      phase.begin_block =
          std::exchange(phase.end_block, before(blocks, block_ == 0 ? 0 : first[phase.end] / block_));
      phases_.push_back(phase);
    }
  }

  /// Collective. A hub of n edges costs its wave n / block sums and up to 2 * block edges: least where the
  /// block is near the square root of n. The CPU needs none: its lanes are few and each takes what comes.
  std::vector<std::uint64_t> choose_blocks(const std::vector<std::uint64_t>& first) {
    std::uint64_t most[2] = {0, first.back()};  // of a vertex, of a PE
    for (std::uint64_t v = 0; v < graph_.my_vertices; ++v)
      most[0] = std::max(most[0], first[v + 1] - first[v]);
    rt_.all_reduce(std::span<std::uint64_t>(most), esker::Reduction::kMax);
    for (block_ = kLeastBlock; block_ * block_ < most[0];) block_ *= 2;
    std::vector<std::uint64_t> of_hubs;
    for (std::uint64_t v = 0; v < graph_.my_vertices; ++v) {
      if (first[v + 1] - first[v] < 2 * block_) continue;
      for (std::uint64_t b = (first[v] + block_ - 1) / block_; b < first[v + 1] / block_; ++b)
        of_hubs.push_back(b);
    }
    block_sums_ = rt_.heap().allocate<double>(most[1] / block_ + 1);
    blocks_ = rt_.heap().allocate<std::uint64_t>(most[1] / block_ + 1);
    rt_.heap().write(blocks_, 0, std::span<const std::uint64_t>(of_hubs));
    return of_hubs;
  }

  /// Collective. What the vertices of the phase have goes to where their edges lead.
  void push(styles::Superstep& superstep, const Phase& phase) {
    if (sweep_.by_edge) {
      superstep.run(traversal_->lanes(),
                    PushEdges{*traversal_, slots_of_edges_->of_edge, shares(now_), slots_}, "pagerank");
      return;
    }
    const std::uint64_t per_lane = rt_.runs_on_device() ? 1 : kHostRuns;
    superstep.run((phase.end_run - phase.begin_run + per_lane - 1) / per_lane,
                  PushRuns{mirrors_->sent, mirrors_->mirrors, shares(now_), runs_[now_], phase.begin_run,
                           phase.end_run, per_lane},
                  "pagerank");
  }

  Sums gather(const Phase& phase, double base) {
    if (sweep_.by_edge) return gather(phase, base, Arrived<Reading::kSlots>{slots_, {}});
    if (sweep_.in_place)
      return gather(phase, base, Arrived<Reading::kMovingShares>{shares(now_), mirrors_->source_of});
    return gather(phase, base, Arrived<Reading::kShares>{shares(now_), mirrors_->source_of});
  }

  template <Reading kReading>
  Sums gather(const Phase& phase, double base, const Arrived<kReading>& arrived) {
    Sums total;
    const std::uint64_t count = phase.end - phase.begin;
    if (count == 0) return total;
    const Gather<kReading> gather{
        arrived, first_in_,   per_edge_, ranks_, shares(1 - now_),        block_sums_,
        sums_,   phase.begin, phase.end, block_, static_cast<float>(base)};
    std::uint64_t parts = 0;
    if (rt_.runs_on_device()) {
      parts = std::min(kMostParts, count);
      const esker::LaunchShape shape{parts * kGroupLanes, kGroupLanes};
      if (phase.begin_block < phase.end_block) {
        rt_.launch_shape(
            shape,
            SumBlocks<kReading>{arrived, blocks_, block_sums_, block_, phase.begin_block, phase.end_block},
            "pagerank-sum-blocks");
      }
      rt_.launch_shape(shape, GatherByWave<kReading>{gather}, "pagerank-gather");
    } else {
      const std::uint64_t per_lane = (count + kMostParts - 1) / kMostParts;
      parts = (count + per_lane - 1) / per_lane;
      rt_.launch_shape({parts, kHostGroupLanes}, GatherByLane<kReading>{gather, per_lane}, "pagerank-gather");
    }
    std::vector<Sums> sums(parts);
    rt_.heap().read(sums_, 0, std::span(sums));
    for (const Sums& part : sums) {
      total.dangling += part.dangling;
      total.change += part.change;
    }
    return total;
  }

  esker::Runtime& rt_;
  const graph::DistributedGraph& graph_;
  const Sweep sweep_;
  esker::SymmetricArray<float> ranks_, per_edge_;
  esker::SymmetricArray<Sums> sums_;
  esker::SymmetricArray<Run> runs_[2];  // shares; in place, twice the same
  int now_ = 0;
  std::optional<graph::Mirrors> mirrors_;
  std::optional<graph::EdgeSlots> slots_of_edges_;  // --push edges, and the next two
  std::optional<graph::EdgeTraversal> traversal_;
  esker::SymmetricArray<float> slots_;
  esker::SymmetricArray<std::uint64_t> first_in_;
  std::vector<Phase> phases_;
  double dangling_at_start_ = 0;
  double last_change_ = 0;
  std::uint64_t block_ = 0;                      // edges; 0: no sums of blocks
  esker::SymmetricArray<std::uint64_t> blocks_;  // of hubs
  esker::SymmetricArray<double> block_sums_;
};

}  // namespace pagerank
