// bfs: breadth-first search from vertices drawn at random, by the rules of the GAP benchmark suite.
//
// Invariant. A PE has its vertices' parents and depths. When a step has ended, every vertex that is no more
// edges from the source than there were steps has been reached, by a vertex with an edge to it that is nearer
// by one. A vertex is reached once: by whoever sets its bit.
#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <esker/config.hpp>
#include <esker/esker.hpp>

#include "../graph/distributed_graph.hpp"
#include "../graph/partition.hpp"
#include "../graph/positions.hpp"
#include "../graph/serial_graph.hpp"
#include "../graph/sources.hpp"
#include "../graph/vertex_values.hpp"
#include "../harness/application.hpp"
#include "search.hpp"
#include "verifier.hpp"

namespace {

using bfs::kNone;
using Graph = graph::DistributedGraph;

// The serial search holds the whole graph: it is left out where there are more edges.
constexpr std::uint64_t kMostSerialEdges = std::uint64_t{1} << 22;

struct Options : harness::Options {
  graph::Options graph;
  std::string source = "auto";
  std::string direction = "auto";
  std::uint64_t alpha = 15, beta = 18;
};

/// One timed search.
struct Trial {
  std::uint64_t source;  // global id
  std::uint64_t edges;   // of the vertices that it has reached
};

/// Collective. Edges that leave a vertex.
std::uint64_t degree_of(esker::Runtime& rt, const Graph& graph, std::uint64_t id) {
  std::array<std::uint64_t, 1> degree{0};
  if (const graph::Location at = graph.place_of(id); at.pe() == rt.pe()) {
    std::array<std::uint64_t, 2> row{};
    rt.heap().read(graph.first, at.index(), std::span<std::uint64_t>(row));
    degree[0] = row[1] - row[0];
  }
  rt.all_reduce(std::span<std::uint64_t>(degree), esker::Reduction::kSum);
  return degree[0];
}

/// Says where each search starts.
class Picker {
 public:
  /// Collective.
  Picker(esker::Runtime& rt, const Graph& graph, const std::string& source)
      : rt_{rt}, graph_{graph}, drawn_{graph.partition.vertices()} {
    harness::agree(rt, [&] {
      if (source != "auto") return read(source);
      if (graph.all_edges == 0) harness::usage("the graph has no edges: no vertex to start from");
    });
  }

  /// Collective. A vertex that some edge leaves, or that of --source, which need have none.
  std::uint64_t next() {
    if (is_given_) return given_;
    for (;;) {
      const std::uint64_t id = drawn_.next();
      if (degree_of(rt_, graph_, id) > 0) return id;
    }
  }

 private:
  void read(const std::string& source) {
    try {
      given_ = esker::parse_count(source);
    } catch (const std::invalid_argument& wrong) {
      harness::usage("--source: " + source + " " + wrong.what());
    }
    if (given_ >= graph_.partition.vertices()) harness::usage("--source: the graph has no vertex " + source);
    is_given_ = true;
  }

  esker::Runtime& rt_;
  const Graph& graph_;
  graph::Sources drawn_;
  std::uint64_t given_ = 0;
  bool is_given_ = false;
};

std::vector<std::uint32_t> serial_depths(const graph::SerialGraph& graph, std::uint64_t source) {
  std::vector<std::uint32_t> depths(graph.vertices(), kNone);
  std::vector<std::uint32_t> queue{static_cast<std::uint32_t>(source)};
  depths[source] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const std::uint32_t v : graph.neighbours(queue[i])) {
      if (depths[v] != kNone) continue;
      depths[v] = depths[queue[i]] + 1;
      queue.push_back(v);
    }
  }
  return depths;
}

/// Of this PE's vertices, those at another depth than a serial search finds.
std::uint64_t count_other_depths(esker::Runtime& rt, const Graph& graph,
                                 const std::vector<bfs::Visit>& visits,
                                 const std::vector<std::uint32_t>& expected) {
  std::uint64_t wrong = 0;
  for (std::uint64_t v = 0; v < visits.size(); ++v)
    wrong += visits[v].depth != expected[graph.global_id(rt, v)] ? 1 : 0;
  return wrong;
}

/// Collective. Vertices that were reached, the depth of the deepest, and their edges.
struct Reached {
  std::uint64_t vertices = 0, deepest = 0, edges = 0;

  Reached(esker::Runtime& rt, const Graph& graph, const std::vector<bfs::Visit>& visits) {
    const auto first = graph::read_first(rt, graph.first, graph.my_vertices);
    std::array<std::uint64_t, 2> sums{};
    std::array<std::uint64_t, 1> most{};
    for (std::uint64_t v = 0; v < visits.size(); ++v) {
      if (visits[v].parent == kNone) continue;
      sums = {sums[0] + 1, sums[1] + first[v + 1] - first[v]};
      most[0] = std::max<std::uint64_t>(most[0], visits[v].depth);
    }
    rt.all_reduce(std::span<std::uint64_t>(sums), esker::Reduction::kSum);
    rt.all_reduce(std::span<std::uint64_t>(most), esker::Reduction::kMax);
    vertices = sums[0];
    edges = sums[1];
    deepest = most[0];
  }
};

/// Graph500's: the harmonic mean of edges a second, undirected ones counted once.
double traversed_per_second(const std::vector<Trial>& trials, const std::vector<double>& seconds,
                            bool undirected) {
  double seconds_an_edge = 0;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const double edges = static_cast<double>(trials[i].edges) / (undirected ? 2 : 1);
    if (edges == 0) return 0;
    seconds_an_edge += seconds[i] / edges;
  }
  return static_cast<double>(trials.size()) / seconds_an_edge;
}

std::vector<std::int64_t> parents_of(const Graph& graph, const graph::Positions& positions,
                                     const std::vector<bfs::Visit>& visits) {
  std::vector<std::int64_t> parents;
  for (const bfs::Visit& visit : visits) {
    const graph::Location at = positions.place(visit.parent);
    parents.push_back(visit.parent == kNone
                          ? -1
                          : static_cast<std::int64_t>(graph.partition.global_id(at.pe(), at.index())));
  }
  return parents;
}

int run(int argc, char** argv) {
  Options o;
  esker::CommandLine line(
      "esker-bfs",
      "Searches a graph distributed over the PEs, breadth first; each repeat is a trial from "
      "another vertex.");
  o.add_to(line);
  o.graph.add_to(line, true);
  o.add_output_to(line, "each vertex and its parent in the last trial, -1 where it was not reached");
  line.add("source", &o.source,
           "the vertex to start from; auto: a random one with edges for each trial, drawn as GAP draws them")
      .add("direction", &o.direction, "auto: steps go up where that is less work; or all go down",
           {"auto", "top-down"})
      .add("alpha", &o.alpha, "steps go up once the frontier has 1 / alpha of the edges that are left")
      .add("beta", &o.beta, "and down again when it shrinks below 1 / beta of the vertices");
  esker::Config config = o.parse(line, argc, argv);
  harness::require_within("alpha", o.alpha, 1, 32);
  harness::require_within("beta", o.beta, 1, 32);
  o.graph.complete(o.size);
  styles::configure(config, o.chosen_style());

  esker::Runtime rt(config);
  o.open(rt);
  styles::Superstep superstep(rt, o.chosen_style());
  const bool goes_up = o.direction == "auto";
  const graph::EdgeSource edges(rt, o.graph, o.seed, inputs::Weights::kIgnored);
  const auto partition = graph::make_partition(rt, o.graph.partition, edges, o.seed);
  const Graph graph = graph::load(rt, edges, partition, o.graph.undirected);
  const graph::Positions positions = graph::make_positions(rt, graph);
  const bfs::Rows out{graph.first, graph::make_targets(rt, graph, positions)};
  bfs::Rows in = out;
  if (goes_up && !o.graph.undirected) {
    const Graph reversed = graph::load(rt, edges.reversed(), partition, false);
    in = {reversed.first, graph::make_targets(rt, reversed, positions)};
  }
  bfs::Search search(rt, graph, positions, out, in, {goes_up, o.alpha, o.beta});
  bfs::Verifier verifier(rt, graph, out, search);
  Picker picker(rt, graph, o.source);

  std::vector<Trial> trials;
  const auto finish_trial = [&] {
    if (!trials.empty()) trials.back().edges = Reached(rt, graph, search.visits()).edges;
  };
  nlohmann::json more = graph::facts(o.graph, graph);
  graph::SerialGraph whole;
  const auto measured = harness::measure(
      rt, superstep, o,
      [&] {
        finish_trial();
        trials.push_back({picker.next(), 0});
      },
      [&] { search.run(superstep, positions.of(graph.place_of(trials.back().source))); },
      [&] {
        const std::uint64_t source = trials.back().source;
        std::uint64_t wrong = verifier.count_wrong(positions.of(graph.place_of(source)));
        if (graph.all_edges > kMostSerialEdges) return wrong;
        if (whole.first.empty()) whole = graph::load_serially(edges, o.graph.undirected, rt.host_threads());
        const harness::Stopwatch stopwatch;
        const std::vector<std::uint32_t> expected = serial_depths(whole, source);
        more["serial_seconds"] = stopwatch.seconds();
        return wrong + count_other_depths(rt, graph, search.visits(), expected);
      });
  finish_trial();
  const std::vector<bfs::Visit> visits = search.visits();
  graph::write_values<std::int64_t>(
      rt, o, graph.partition,
      o.output.empty() ? std::vector<std::int64_t>() : parents_of(graph, positions, visits));
  const Reached reached(rt, graph, visits);
  more["direction"] = o.direction;
  more["alpha"] = o.alpha;
  more["beta"] = o.beta;
  more["source"] = trials.back().source;
  more["reached"] = reached.vertices;
  more["deepest"] = reached.deepest;
  more["steps"] = search.steps();
  more["steps_up"] = search.steps_up();
  more["seconds_mean"] = std::accumulate(measured.seconds.begin(), measured.seconds.end(), 0.0) /
                         static_cast<double>(measured.seconds.size());
  more["teps"] = traversed_per_second(trials, measured.seconds, o.graph.undirected);
  return harness::finish(rt, o, "bfs", measured, static_cast<double>(graph.all_edges), "edges", more);
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-bfs", argc, argv, run); }
