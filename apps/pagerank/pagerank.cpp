// PageRank: the share of time that a random walk spends at each vertex. It follows an edge out of its vertex
// with probability 0.85, and otherwise, or where there is none, goes anywhere.
//
// Invariant. After each superstep the mirror of u on a PE holds what u pushed last, rank(u) / edges out of u.
// An edge u -> v reads u's mirror at v's owner, and the sum over v's edges is what its neighbours give it.
// With --push edges each edge has a mirror of its own, its slot, as in the thesis (section 5.4).
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <esker/esker.hpp>

#include "../graph/distributed_graph.hpp"
#include "../graph/edge_slots.hpp"
#include "../graph/edge_traversal.hpp"
#include "../graph/mirrors.hpp"
#include "../graph/partition.hpp"
#include "../graph/prefix_sums.hpp"
#include "../graph/serial_graph.hpp"
#include "../graph/vertex_values.hpp"
#include "../harness/application.hpp"

namespace {

constexpr double kDamping = 0.85;
constexpr double kMostError = 1e-6;  // L1 distance to the serial ranks

struct Options : harness::Options {
  graph::Options graph;
  std::string push = "mirrors";
  std::uint64_t iterations = 20;
  double tolerance = 0;
};

/// A lane pushes the ranks of its vertices to their mirrors.
struct Push {
  using Message = styles::Put<double>;
  struct State {
    graph::EdgeTraversal::State at;
    double share;
  };
  graph::EdgeTraversal traversal;  // over the mirrors
  esker::SymmetricArray<graph::Location> mirrors;
  esker::SymmetricArray<std::uint64_t> first;  // edges
  esker::SymmetricArray<double> ranks;
  esker::SymmetricArray<double> shares;

  ESKER_HD State start(std::uint64_t id) const { return {traversal.begin(id), 0}; }
  ESKER_HD bool next(State& state, Message& message) const {
    if (!traversal.step(state.at)) {
      if (!traversal.next_row(state.at)) return false;
      const std::uint64_t v = state.at.vertex;
      state.share = ranks[v] / static_cast<double>(first[v + 1] - first[v]);
    }
    const graph::Location mirror = mirrors[state.at.edge];
    message = {&shares[mirror.index()], mirror.pe(), state.share};
    return true;
  }
};

/// What has been pushed along the edges into this PE's vertices.
struct Arrived {
  esker::SymmetricArray<double> shares;  // of mirrors
  esker::SymmetricArray<std::uint32_t> mirror_of;
  bool by_edge;  // an edge's mirror is its own
  ESKER_HD double operator[](std::uint64_t edge) const { return shares[by_edge ? edge : mirror_of[edge]]; }
};

/// On a GPU, waves take blocks of hubs' edges in turn and add each up, so that a hub finds most of its sum
/// made. A wave's lanes read neighbouring edges together.
struct SumBlocks {
  Arrived arrived;
  esker::SymmetricArray<std::uint64_t> blocks;
  esker::SymmetricArray<double> block_sums;
  std::uint64_t block, count;
  ESKER_HD void operator()(esker::GroupLane& lane) const {
    const std::uint32_t width = lane.wave().size();
    const std::uint32_t me = lane.wave().index();
    for (std::uint64_t i = lane.global_id() / width; i < count; i += lane.lanes() / width) {
      const std::uint64_t b = blocks[i];
      double sum = 0;
      for (std::uint64_t e = b * block + me; e < (b + 1) * block; e += width) sum += arrived[e];
      sum = lane.wave().reduce(sum, esker::Sum{});
      if (me == 0) block_sums[b] = sum;
    }
  }
};

/// What was found at some vertices.
struct Sums {
  double dangling = 0;  // rank of vertices without edges
  double change = 0;    // of all ranks, in absolute value
};

/// Vertices get their new ranks.
struct Gather {
  esker::SymmetricArray<std::uint64_t> first;
  esker::SymmetricArray<std::uint64_t> first_in;
  esker::SymmetricArray<double> ranks;
  Arrived arrived;
  esker::SymmetricArray<double> block_sums;
  esker::SymmetricArray<Sums> sums;
  std::uint64_t vertices;
  std::uint64_t block;  // 0: there are no block sums
  double base;          // of every rank

  /// Of what has arrived at vertex v, every `step`-th from number `from` on, by whole blocks where there are
  /// some.
  ESKER_HD double part_of(std::uint64_t v, std::uint64_t from, std::uint64_t step) const {
    std::uint64_t begin = first_in[v];
    const std::uint64_t end = first_in[v + 1];
    double sum = 0;
    if (block > 0 && end - begin >= 2 * block) {
      const std::uint64_t first_block = (begin + block - 1) / block, last_block = end / block;
      for (std::uint64_t e = begin + from; e < first_block * block; e += step) sum += arrived[e];
      for (std::uint64_t b = first_block + from; b < last_block; b += step) sum += block_sums[b];
      begin = last_block * block;
    }
    for (std::uint64_t e = begin + from; e < end; e += step) sum += arrived[e];
    return sum;
  }
  ESKER_HD void give_rank(std::uint64_t v, double sum, Sums& mine) const {
    const double rank = base + kDamping * sum;
    mine.change += rank < ranks[v] ? ranks[v] - rank : rank - ranks[v];
    if (first[v] == first[v + 1]) mine.dangling += rank;
    ranks[v] = rank;
  }
};

/// On the CPU, each lane has a run of vertices.
struct GatherByLane {
  Gather gather;
  std::uint64_t per_lane;
  ESKER_HD void operator()(esker::Lane lane) const {
    Sums mine;
    const std::uint64_t begin = lane.global_id() * per_lane;
    for (std::uint64_t v = begin; v < begin + per_lane && v < gather.vertices; ++v)
      gather.give_rank(v, gather.part_of(v, 0, 1), mine);
    gather.sums[lane.global_id()] = mine;
  }
};

/// On a GPU, waves take vertices in turn, and a wave adds up the parts of its sum.
struct GatherByWave {
  Gather gather;
  ESKER_HD void operator()(esker::GroupLane& lane) const {
    Sums mine;
    const std::uint32_t width = lane.wave().size();
    const std::uint32_t me = lane.wave().index();
    for (std::uint64_t v = lane.global_id() / width; v < gather.vertices; v += lane.lanes() / width) {
      const double sum = lane.wave().reduce(gather.part_of(v, me, width), esker::Sum{});
      if (me == 0) gather.give_rank(v, sum, mine);
    }
    mine.dangling = lane.group().reduce(mine.dangling, esker::Sum{});
    mine.change = lane.group().reduce(mine.change, esker::Sum{});
    if (lane.lane() == 0) gather.sums[lane.group_id()] = mine;
  }
};

/// The computation on one PE.
class PageRank {
 public:
  PageRank(esker::Runtime& rt, const graph::DistributedGraph& graph, bool by_edge)
      : rt_{rt},
        graph_{graph},
        mirrors_{by_edge ? mirrors_of_edges() : graph::make_mirrors(rt, graph)},
        traversal_{rt, mirrors_.first, graph.my_vertices, mirrors_.of_mine},
        ranks_{rt.heap().allocate<double>(graph.most_vertices)},
        arrived_{rt.heap().allocate<double>(mirrors_.most), mirrors_.mirror_of, by_edge},
        sums_{rt.heap().allocate<Sums>(kMostLanes)},
        dangling_at_start_{dangling_at_start()} {
    traversal_.remember_vertices(rt);
    if (rt.runs_on_device()) choose_blocks();
  }

  /// Puts of an iteration, of all PEs.
  std::uint64_t puts() const { return mirrors_.of_all; }

  void prepare() {
    const std::vector<double> start(graph_.my_vertices, 1 / vertices());
    rt_.heap().write(ranks_, 0, std::span<const double>(start));
  }

  /// Returns how many iterations it made.
  std::uint64_t run(styles::Superstep& superstep, const Options& o) {
    std::uint64_t done = 0;
    double dangling = dangling_at_start_;
    for (bool is_far = true; done < o.iterations && is_far; ++done) {
      superstep.run(traversal_.lanes(),
                    Push{traversal_, mirrors_.locations, graph_.first, ranks_, arrived_.shares}, "pagerank");
      const Sums sums = gather((1 - kDamping + kDamping * dangling) / vertices());
      // Collective: mirrors are written again when every PE has read its own.
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
  static constexpr std::uint64_t kMostGroups = 1024;  // of a GPU: as many as it holds, or some more
  static constexpr std::uint32_t kGroupLanes = 256;
  static constexpr std::uint64_t kLeastBlock = 64;  // edges

  /// Each edge has one of its own: its slot.
  graph::Mirrors mirrors_of_edges() const {
    const graph::EdgeSlots slots = graph::make_edge_slots(rt_, graph_);
    return {graph_.first, slots.of_edge, graph_.my_edges, graph_.all_edges, slots.most, slots.first, {}};
  }

  double vertices() const { return static_cast<double>(graph_.partition.vertices()); }

  /// Collective. A hub of n edges costs its wave n / block sums and up to 2 * block edges: least where the
  /// block is near the square root of n. The CPU needs none: its lanes are few and each takes what comes.
  void choose_blocks() {
    const auto first = graph::read_first(rt_, mirrors_.first_in, graph_.my_vertices);
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
    blocks_count_ = of_hubs.size();
    rt_.heap().write(blocks_, 0, std::span<const std::uint64_t>(of_hubs));
  }

  /// Collective.
  double dangling_at_start() const {
    const auto first = graph::read_first(rt_, graph_.first, graph_.my_vertices);
    double all[1] = {0};
    for (std::uint64_t v = 0; v < graph_.my_vertices; ++v) all[0] += first[v] == first[v + 1] ? 1 : 0;
    rt_.all_reduce(std::span<double>(all), esker::Reduction::kSum);
    return all[0] / vertices();
  }

  Sums gather(double base) {
    Sums total;
    if (graph_.my_vertices == 0) return total;
    const Gather gather{graph_.first, mirrors_.first_in,  ranks_, arrived_, block_sums_,
                        sums_,        graph_.my_vertices, block_, base};
    std::uint64_t parts = 0;
    if (rt_.runs_on_device()) {
      const std::uint64_t groups = std::min(kMostGroups, graph_.my_vertices);
      const esker::LaunchShape shape{groups * kGroupLanes, kGroupLanes};
      if (blocks_count_ > 0) {
        rt_.launch_shape(shape, SumBlocks{arrived_, blocks_, block_sums_, block_, blocks_count_},
                         "pagerank-sum-blocks");
      }
      rt_.launch_shape(shape, GatherByWave{gather}, "pagerank-gather");
      parts = groups;
    } else {
      const std::uint64_t per_lane = (graph_.my_vertices + kMostLanes - 1) / kMostLanes;
      parts = (graph_.my_vertices + per_lane - 1) / per_lane;
      rt_.launch(parts, GatherByLane{gather, per_lane}, "pagerank-gather");
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
  graph::Mirrors mirrors_;
  graph::EdgeTraversal traversal_;  // over mirrors
  esker::SymmetricArray<double> ranks_;
  Arrived arrived_;
  esker::SymmetricArray<Sums> sums_;
  double dangling_at_start_;
  std::uint64_t block_ = 0;                      // edges; 0: no sums of blocks
  esker::SymmetricArray<std::uint64_t> blocks_;  // of hubs
  std::uint64_t blocks_count_ = 0;
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
  o.add_output_to(line, "each vertex and its rank, in order of the vertices, which count from 0");
  line.add("push", &o.push,
           "ranks go to mirrors, one on each PE that a vertex has edges to, or along each of its edges",
           {"mirrors", "edges"})
      .add("iterations", &o.iterations, "at most")
      .add("tolerance", &o.tolerance, "stop when the ranks together change by no more; 0: go on");
  esker::Config config = o.parse(line, argc, argv);
  harness::require_within("iterations", o.iterations, 1, 32);
  o.graph.complete(o.size);
  styles::configure(config, o.chosen_style());

  esker::Runtime rt(config);
  o.open(rt);
  styles::Superstep superstep(rt, o.chosen_style());
  const graph::EdgeSource source(rt, o.graph, o.seed, inputs::Weights::kIgnored);
  const auto graph = graph::load(rt, source, graph::make_partition(rt, o.graph.partition, source, o.seed),
                                 o.graph.undirected);
  PageRank pagerank(rt, graph, o.push == "edges");
  std::uint64_t iterations = 0;
  nlohmann::json more = graph::facts(o.graph, graph);
  auto measured = harness::measure(
      rt, superstep, o, [&] { pagerank.prepare(); }, [&] { iterations = pagerank.run(superstep, o); },
      [&] {
        const graph::SerialGraph out = graph::load_serially(source, o.graph.undirected, rt.host_threads());
        const graph::SerialGraph in = graph::reversed(out, rt.host_threads());
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
  graph::write_values<double>(rt, o, graph.partition, pagerank.ranks());
  more["push"] = o.push;
  more["iterations"] = iterations;
  measured.accesses = pagerank.puts() * iterations;
  const double work = static_cast<double>(graph.all_edges) * static_cast<double>(iterations);
  return harness::finish(rt, o, "pagerank", measured, work, "edges", more);
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-pagerank", argc, argv, run); }
