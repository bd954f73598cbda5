// PageRank: the share of time that a random walk spends at each vertex. It follows an edge out of its vertex
// with probability 0.85, and otherwise, or where there is none, goes anywhere.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <esker/esker.hpp>

#include "../graph/distributed_graph.hpp"
#include "../graph/partition.hpp"
#include "../graph/serial_graph.hpp"
#include "../graph/vertex_values.hpp"
#include "../harness/application.hpp"
#include "ranking.hpp"

namespace {

using pagerank::kDamping;

constexpr double kMostError = 1e-6;     // L1 distance to the serial ranks of as many iterations
constexpr std::uint64_t kExact = 1000;  // iterations after which serial ranks no longer change

struct Options : harness::Options {
  graph::Options graph;
  std::string push = "mirrors";
  std::string sweep = "jacobi";
  std::uint64_t phases = 1;
  std::uint64_t iterations = 20;
  double tolerance = 0;

  bool in_place() const { return sweep == "gauss-seidel"; }
};

/// Power iteration, pulling. It ends when the ranks together change by less than `tolerance`.
std::vector<double> serial_ranks(const graph::SerialGraph& out, const graph::SerialGraph& in,
                                 std::uint64_t iterations, double tolerance) {
  const std::uint64_t n = out.vertices();
  std::vector<double> ranks(n, 1 / static_cast<double>(n)), shares(n);
  double change = std::numeric_limits<double>::infinity();
  for (std::uint64_t i = 0; i < iterations && !(change < tolerance); ++i) {
    double dangling = 0;
    change = 0;
    for (std::uint64_t v = 0; v < n; ++v) {
      if (out.degree(v) == 0) dangling += ranks[v];
      shares[v] = ranks[v] / static_cast<double>(out.degree(v));
    }
    for (std::uint64_t v = 0; v < n; ++v) {
      double sum = 0;
      for (const std::uint32_t u : in.neighbours(v)) sum += shares[u];
      const double rank =
          (1 - kDamping) / static_cast<double>(n) + kDamping * (sum + dangling / static_cast<double>(n));
      change += std::abs(rank - ranks[v]);
      ranks[v] = rank;
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
      .add("sweep", &o.sweep,
           "an iteration reads the ranks of the one before it, or whatever ranks there are by now",
           {"jacobi", "gauss-seidel"})
      .add("phases", &o.phases, "of an iteration of gauss-seidel: ranks are pushed after each")
      .add("iterations", &o.iterations, "at most")
      .add("tolerance", &o.tolerance, "stop when the ranks together change by no more; 0: go on");
  esker::Config config = o.parse(line, argc, argv);
  harness::require_within("iterations", o.iterations, 1, 32);
  harness::require_within("phases", o.phases, 1, 10);
  if (o.in_place() && o.push == "edges") harness::usage("--push edges goes with --sweep jacobi");
  if (o.in_place() && !(o.tolerance > 0))
    harness::usage("--sweep gauss-seidel needs a --tolerance: its iterations are nobody else's");
  if (!o.in_place() && o.phases != 1) harness::usage("--phases go with --sweep gauss-seidel");
  o.graph.complete(o.size);
  styles::configure(config, o.chosen_style());

  esker::Runtime rt(config);
  o.open(rt);
  styles::Superstep superstep(rt, o.chosen_style());
  const graph::EdgeSource source(rt, o.graph, o.seed, inputs::Weights::kIgnored);
  const auto graph = graph::load(rt, source, graph::make_partition(rt, o.graph.partition, source, o.seed),
                                 o.graph.undirected);
  pagerank::Ranking ranking(rt, graph, {o.in_place(), o.push == "edges", o.phases});
  std::uint64_t iterations = 0;
  nlohmann::json more = graph::facts(o.graph, graph);
  auto measured = harness::measure(
      rt, superstep, o, [&] { ranking.prepare(); },
      [&] { iterations = ranking.run(superstep, o.iterations, o.tolerance); },
      [&] {
        const graph::SerialGraph out = graph::load_serially(source, o.graph.undirected, rt.host_threads());
        const graph::SerialGraph in = graph::reversed(out, rt.host_threads());
        const harness::Stopwatch stopwatch;
        // In whatever order: iterations bring ranks nearer to the exact ones by the factor kDamping, so all
        // that would follow the last change them by no more than this, beside what floats round.
        const double most_error = (o.in_place() ? ranking.last_change() / (1 - kDamping) : 0) + kMostError;
        const std::vector<double> expected = o.in_place() ? serial_ranks(out, in, kExact, o.tolerance / 1000)
                                                          : serial_ranks(out, in, iterations, 0);
        more["serial_seconds"] = stopwatch.seconds();
        const std::vector<double> ranks = ranking.ranks();
        double error[1] = {0};
        for (std::uint64_t v = 0; v < ranks.size(); ++v)
          error[0] += std::abs(ranks[v] - expected[graph.global_id(rt, v)]);
        rt.all_reduce(std::span<double>(error), esker::Reduction::kSum);
        more["l1_error"] = error[0];
        return std::uint64_t{error[0] <= most_error ? 0u : 1u};  // not a number is wrong too
      });
  graph::write_values<double>(rt, o, graph.partition, ranking.ranks());
  more["push"] = o.push;
  more["sweep"] = o.sweep;
  more["phases"] = o.phases;
  more["tolerance"] = o.tolerance;
  more["iterations"] = iterations;
  measured.accesses = ranking.accesses() * iterations;
  const double work = static_cast<double>(graph.all_edges) * static_cast<double>(iterations);
  return harness::finish(rt, o, "pagerank", measured, work, "edges", more);
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-pagerank", argc, argv, run); }
