// PageRank: the share of time that a walk spends at each vertex which follows an edge out of its place with
// probability 0.85, and otherwise, or where there is none, goes anywhere.
//
// Invariant. Between supersteps, slot s of an edge u -> v, at v's owner, holds what u pushed along it last:
// rank(u) / edges out of u. So after each superstep the sum over v's slots is what v's neighbours give it.
#include <algorithm>
#include <cmath>
#include <vector>

#include <esker/esker.hpp>

#include "../graph/distributed_graph.hpp"
#include "../graph/edge_slots.hpp"
#include "../graph/edge_walk.hpp"
#include "../graph/partition.hpp"
#include "../graph/serial_graph.hpp"
#include "../harness/application.hpp"

namespace {

constexpr double kDamping = 0.85;
constexpr double kMostError = 1e-6;  // L1 distance to the serial ranks

struct Options : harness::Options {
  graph::Options graph;
  std::uint64_t iterations = 20;
  double tolerance = 0;
};

/// A lane pushes the ranks of its edges' vertices along them.
struct Push {
  using Message = styles::Put<double>;
  struct State {
    graph::EdgeWalk::State at;
    double share;
  };
  graph::EdgeWalk walk;
  esker::SymmetricArray<graph::Place> slot_of_edge;
  esker::SymmetricArray<double> ranks;
  esker::SymmetricArray<double> slots;

  ESKER_HD State start(std::uint64_t id) const { return {walk.begin(id), 0}; }
  ESKER_HD bool next(State& state, Message& message) const {
    if (!walk.step(state.at)) {
      if (!walk.next_row(state.at)) return false;
      const std::uint64_t v = state.at.vertex;
      state.share = ranks[v] / static_cast<double>(walk.degree(v));
    }
    const graph::Place slot = slot_of_edge[state.at.edge];
    message = {&slots[slot.index()], slot.pe(), state.share};
    return true;
  }
};

/// A lane adds up a block of slots, whosever they are, so that hubs find most of their sums made.
struct SumBlocks {
  esker::SymmetricArray<double> slots;
  esker::SymmetricArray<double> block_sums;
  std::uint64_t block;
  ESKER_HD void operator()(esker::WorkItem item) const {
    double sum = 0;
    const std::uint64_t begin = item.global_id() * block;
    for (std::uint64_t s = begin; s < begin + block; ++s) sum += slots[s];
    block_sums[item.global_id()] = sum;
  }
};

/// What a lane found at its vertices.
struct Sums {
  double dangling;  // rank of vertices without edges
  double change;    // of all ranks, in absolute value
};

/// A lane gives its vertices their new ranks: vertex id * per_lane + i, or with `strided`, id + i * lanes.
struct Gather {
  esker::SymmetricArray<std::uint64_t> first;
  esker::SymmetricArray<std::uint64_t> first_slot;
  esker::SymmetricArray<double> ranks;
  esker::SymmetricArray<double> slots;
  esker::SymmetricArray<double> block_sums;
  esker::SymmetricArray<Sums> sums;
  std::uint64_t vertices, lanes, per_lane;
  std::uint64_t block;  // 0: there are no block sums
  bool strided;
  double base;  // of every rank

  ESKER_HD void operator()(esker::WorkItem item) const {
    Sums mine{0, 0};
    for (std::uint64_t i = 0; i < per_lane; ++i) {
      const std::uint64_t v = strided ? item.global_id() + i * lanes : item.global_id() * per_lane + i;
      if (v >= vertices) break;
      const double sum = sum_of(first_slot[v], first_slot[v + 1]);
      const double rank = base + kDamping * sum;
      mine.change += rank < ranks[v] ? ranks[v] - rank : rank - ranks[v];
      if (first[v] == first[v + 1]) mine.dangling += rank;
      ranks[v] = rank;
    }
    sums[item.global_id()] = mine;
  }

 private:
  /// Slots begin to end - 1, by whole blocks where there are some.
  ESKER_HD double sum_of(std::uint64_t begin, std::uint64_t end) const {
    double sum = 0;
    if (block > 0 && end - begin >= 2 * block) {
      for (; begin % block != 0; ++begin) sum += slots[begin];
      for (; begin + block <= end; begin += block) sum += block_sums[begin / block];
    }
    for (; begin < end; ++begin) sum += slots[begin];
    return sum;
  }
};

/// A lane adds up every `lanes`-th of `count` sums, from its own on, in its own.
struct AddSums {
  esker::SymmetricArray<Sums> sums;
  std::uint64_t count, lanes;
  ESKER_HD void operator()(esker::WorkItem item) const {
    Sums total{0, 0};
    for (std::uint64_t i = item.global_id(); i < count; i += lanes) {
      total.dangling += sums[i].dangling;
      total.change += sums[i].change;
    }
    sums[item.global_id()] = total;
  }
};

/// The computation on one PE.
class PageRank {
 public:
  PageRank(esker::Runtime& rt, const graph::DistributedGraph& graph)
      : rt_{rt},
        graph_{graph},
        edge_slots_{graph::make_edge_slots(rt, graph)},
        walk_{rt, graph.first, graph.my_vertices, graph.my_edges},
        ranks_{rt.heap().allocate<double>(graph.most_vertices)},
        slots_{rt.heap().allocate<double>(edge_slots_.most)},
        sums_{rt.heap().allocate<Sums>(kMostLanes)} {
    if (rt.runs_on_device()) choose_blocks();
  }

  void prepare() {
    const std::vector<double> start(graph_.my_vertices, 1 / vertices());
    rt_.heap().write(ranks_, 0, std::span<const double>(start));
  }

  /// Returns how many iterations it made.
  std::uint64_t run(styles::Superstep& superstep, const Options& o) {
    std::uint64_t done = 0;
    double dangling = initially_dangling();
    for (bool is_far = true; done < o.iterations && is_far; ++done) {
      superstep.run(walk_.lanes(), Push{walk_, edge_slots_.of_edge, ranks_, slots_}, "pagerank");
      const Sums sums = gather((1 - kDamping + kDamping * dangling) / vertices());
      // Collective: slots are written again when every PE has read its own.
      double all[2] = {sums.dangling, sums.change};
      rt_.all_reduce(std::span<double>(all), esker::Reduction::kSum);
      dangling = all[0];
      is_far = o.tolerance == 0 || all[1] > o.tolerance;
    }
    return done;
  }

  std::vector<double> ranks() const {
    std::vector<double> mine(graph_.my_vertices);
    rt_.heap().read(ranks_, 0, std::span(mine));
    return mine;
  }

 private:
  static constexpr std::uint64_t kMostLanes = std::uint64_t{1} << 16;
  static constexpr std::uint64_t kMostSumsRead = 256;
  static constexpr std::uint64_t kLeastBlock = 64;  // slots

  double vertices() const { return static_cast<double>(graph_.partition.vertices()); }

  /// Collective. A hub of n slots costs its lane n / block sums and up to 2 * block slots: least where the
  /// block is near the square root of n. The CPU needs none: its lanes are few and each takes what comes.
  void choose_blocks() {
    std::vector<std::uint64_t> first(graph_.my_vertices + 1);
    rt_.heap().read(edge_slots_.first, 0, std::span(first));
    std::uint64_t longest[1] = {0};
    for (std::uint64_t v = 0; v < graph_.my_vertices; ++v)
      longest[0] = std::max(longest[0], first[v + 1] - first[v]);
    rt_.all_reduce(std::span<std::uint64_t>(longest), esker::Reduction::kMax);
    for (block_ = kLeastBlock; block_ * block_ < longest[0];) block_ *= 2;
    block_sums_ = rt_.heap().allocate<double>(edge_slots_.most / block_ + 1);
    blocks_ = first.back() / block_;
  }

  double initially_dangling() {
    std::vector<std::uint64_t> first(graph_.my_vertices + 1);
    rt_.heap().read(graph_.first, 0, std::span(first));
    double all[1] = {0};
    for (std::uint64_t v = 0; v < graph_.my_vertices; ++v) all[0] += first[v] == first[v + 1] ? 1 : 0;
    rt_.all_reduce(std::span<double>(all), esker::Reduction::kSum);
    return all[0] / vertices();
  }

  Sums gather(double base) {
    Sums total{0, 0};
    if (graph_.my_vertices == 0) return total;
    const std::uint64_t per_lane = (graph_.my_vertices + kMostLanes - 1) / kMostLanes;
    const std::uint64_t lanes = (graph_.my_vertices + per_lane - 1) / per_lane;
    if (blocks_ > 0) rt_.launch(blocks_, SumBlocks{slots_, block_sums_, block_}, "pagerank-sum-blocks");
    rt_.launch(lanes,
               Gather{graph_.first, edge_slots_.first, ranks_, slots_, block_sums_, sums_, graph_.my_vertices,
                      lanes, per_lane, block_, rt_.runs_on_device(), base},
               "pagerank-gather");
    // From a GPU what the host reads takes longer than another kernel.
    const std::uint64_t left = rt_.runs_on_device() ? std::min(lanes, kMostSumsRead) : lanes;
    if (left < lanes) rt_.launch(left, AddSums{sums_, lanes, left}, "pagerank-add-sums");
    std::vector<Sums> of_lanes(left);
    rt_.heap().read(sums_, 0, std::span(of_lanes));
    for (const Sums& sums : of_lanes) {
      total.dangling += sums.dangling;
      total.change += sums.change;
    }
    return total;
  }

  esker::Runtime& rt_;
  const graph::DistributedGraph& graph_;
  graph::EdgeSlots edge_slots_;
  graph::EdgeWalk walk_;
  esker::SymmetricArray<double> ranks_, slots_;
  esker::SymmetricArray<Sums> sums_;
  std::uint64_t block_ = 0;   // slots; 0: no sums of blocks
  std::uint64_t blocks_ = 0;  // whole ones of this PE
  esker::SymmetricArray<double> block_sums_;
};

/// Power iteration, pulling.
std::vector<double> serial_ranks(const graph::SerialGraph& out, const graph::SerialGraph& in,
                                 std::uint64_t iterations) {
  const std::uint64_t n = out.vertices();
  std::vector<double> ranks(n, 1 / static_cast<double>(n)), shares(n);
  for (std::uint64_t i = 0; i < iterations; ++i) {
    double dangling = 0;
    for (std::uint64_t v = 0; v < n; ++v) {
      if (out.degree(v) == 0) dangling += ranks[v];
      shares[v] = ranks[v] / static_cast<double>(out.degree(v));
    }
    for (std::uint64_t v = 0; v < n; ++v) {
      double sum = 0;
      for (const std::uint32_t u : in.neighbours(v)) sum += shares[u];
      ranks[v] =
          (1 - kDamping) / static_cast<double>(n) + kDamping * (sum + dangling / static_cast<double>(n));
    }
  }
  return ranks;
}

int run(int argc, char** argv) {
  Options o;
  esker::CommandLine line("esker-pagerank", "Ranks the vertices of a graph distributed over the PEs.");
  o.add_to(line);
  o.graph.add_to(line, true);
  line.add("iterations", &o.iterations, "at most")
      .add("tolerance", &o.tolerance, "stop when the ranks together change by no more; 0: go on");
  esker::Config config = line.parse(argc, argv);
  if (o.iterations == 0) harness::usage("--iterations is at least 1");
  o.graph.choose_scale(o.size);
  styles::configure(config, o.chosen_style());

  esker::Runtime rt(config);
  styles::Superstep superstep(rt, o.chosen_style());
  const graph::EdgeSource source(rt, o.graph, o.seed);
  const auto graph = graph::load(rt, source, graph::make_partition(rt, o.graph.partition, source, o.seed),
                                 o.graph.undirected);
  PageRank pagerank(rt, graph);
  std::uint64_t iterations = 0;
  nlohmann::json more = graph::facts(o.graph, graph);
  auto measured = harness::measure(
      rt, superstep, o, [&] { pagerank.prepare(); }, [&] { iterations = pagerank.run(superstep, o); },
      [&] {
        const graph::SerialGraph out = graph::load_serially(source, o.graph.undirected);
        const graph::SerialGraph in = graph::reversed(out);
        const harness::Stopwatch stopwatch;
        const std::vector<double> expected = serial_ranks(out, in, iterations);
        more["serial_seconds"] = stopwatch.seconds();
        const std::vector<double> ranks = pagerank.ranks();
        double error[1] = {0};
        for (std::uint64_t v = 0; v < ranks.size(); ++v)
          error[0] += std::abs(ranks[v] - expected[graph.global_id(rt, v)]);
        rt.all_reduce(std::span<double>(error), esker::Reduction::kSum);
        more["l1_error"] = error[0];
        return std::uint64_t{error[0] <= kMostError ? 0u : 1u};  // not a number is wrong too
      });
  more["iterations"] = iterations;
  measured.accesses = graph.all_edges * iterations;
  return harness::finish(rt, o, "pagerank", measured, static_cast<double>(measured.accesses), "edges", more);
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-pagerank", argc, argv, run); }
