// Single-source shortest paths: the least sum of weights on a way from the source to each vertex.
//
// Invariant. Distances are doubles, or integers where all weights are. A way's length is its weights added
// from the source on, each sum rounded. Rounding keeps order and weights are not negative, so the least
// length of all ways to a vertex is one number in whatever order ways are tried: relaxation in any order and
// Dijkstra's algorithm end with the same bits. Between rounds, a vertex's distance is the length of some way
// to it, or infinity; every vertex whose distance has fallen since it was relaxed is in one of the frontier's
// lists. Of other PEs' vertices a PE knows the least distance that it has found itself, which it tells once a
// round.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <queue>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <esker/config.hpp>
#include <esker/esker.hpp>

#include "../graph/distributed_graph.hpp"
#include "../graph/edge_slots.hpp"
#include "../graph/partition.hpp"
#include "../graph/prefix_sums.hpp"
#include "../graph/remote_endpoints.hpp"
#include "../graph/serial_graph.hpp"
#include "../graph/vertex_values.hpp"
#include "../harness/application.hpp"
#include "../harness/fill.hpp"
#include "frontier.hpp"

namespace {

using sssp::kFar;
using sssp::Vertex;
using Graph = graph::DistributedGraph;

struct Options : harness::Options {
  graph::Options graph;
  std::string relax = "am";
  std::string weights = "graph";
  std::string source = "auto";
  double delta = 0;
};

/// The computation on one PE.
template <class D>
class ShortestPaths {
 public:
  ShortestPaths(esker::Runtime& rt, const graph::DistributedGraph& graph, const Options& o)
      : rt_{rt},
        graph_{graph},
        endpoints_{graph::make_remote_endpoints(rt, graph)},
        edges_{shortened()},
        frontier_{rt, graph, o.delta, endpoints_.size()} {
    if (o.relax == "put") {
      edge_slots_ = graph::make_edge_slots(rt, graph);
      slots_ = rt.heap().allocate<D>(edge_slots_->most);
    } else {
      lower_ = rt.register_handler<Vertex<D>, D>("sssp-lower", sssp::Lower<D>{frontier_.lists()});
    }
  }

  void prepare(graph::Location source) {
    frontier_.start(source.pe() == rt_.pe(), source.index());
    harness::fill(rt_, slots_, slots_.size(), [](std::uint64_t) { return kFar<D>; });
  }

  /// Returns how often PEs have met.
  std::uint64_t run(styles::Superstep& superstep) {
    for (std::uint64_t rounds = 0;; ++rounds) {
      const std::uint64_t asks = edge_slots_ ? frontier_.take() : relax_mine();
      const sssp::Next next = frontier_.next(asks > 0);
      if (next == sssp::Next::kEnd) return rounds;
      if (next == sssp::Next::kSuperstep) edge_slots_ ? put(superstep) : tell(superstep, asks);
    }
  }

  std::vector<double> distances() const {
    std::vector<Vertex<D>> mine(graph_.my_vertices);
    rt_.heap().read(frontier_.lists().vertices, 0, std::span(mine));
    std::vector<double> distances;
    for (const Vertex<D>& vertex : mine)
      distances.push_back(vertex.distance == kFar<D> ? kFar<double> : static_cast<double>(vertex.distance));
    return distances;
  }

 private:
  static constexpr std::uint64_t kHostTells = 256;  // of a lane

  /// Relaxes edges of this PE's vertices as long as there are some in the bucket, and returns how many
  /// vertices of others have fallen.
  std::uint64_t relax_mine() {
    while (frontier_.take()) {
      graph::launch_runs(rt_, frontier_.taken(), "sssp-relax", [&]<std::uint64_t kRun>() {
        return sssp::Relax<D, kRun>{frontier_.lists(), edges_, frontier_.taken()};
      });
    }
    return frontier_.remote();
  }

  /// Collective.
  void tell(styles::Superstep& superstep, std::uint64_t count) {
    const std::uint64_t per_lane = rt_.runs_on_device() ? 1 : kHostTells;
    superstep.run((count + per_lane - 1) / per_lane,
                  sssp::Tell<D>{frontier_.lists(), endpoints_.locations, lower_, count, per_lane}, "sssp");
  }

  /// Collective.
  void put(styles::Superstep& superstep) {
    const auto& lists = frontier_.lists();
    superstep.run(frontier_.taken(), sssp::OfferByPut<D>{lists.taken, edges_, edge_slots_->of_edge, slots_},
                  "sssp");
    rt_.launch(graph_.my_vertices, sssp::LowerFromSlots<D>{lists, edge_slots_->first, slots_}, "sssp-lower");
  }

  esker::SymmetricArray<sssp::Edge<D>> shortened() const {
    const auto edges = rt_.heap().allocate<sssp::Edge<D>>(graph_.edges.size());
    std::vector<sssp::Edge<D>> chunk;
    graph::for_each_chunk(rt_, graph_, [&](std::uint64_t first, std::span<const graph::Edge> long_ones) {
      chunk.clear();
      for (const graph::Edge& edge : long_ones)
        chunk.push_back({endpoints_.endpoint_of(rt_, edge.to), static_cast<D>(edge.weight)});
      rt_.heap().write(edges, first, std::span<const sssp::Edge<D>>(chunk));
    });
    return edges;
  }

  esker::Runtime& rt_;
  const graph::DistributedGraph& graph_;
  graph::RemoteEndpoints endpoints_;
  esker::SymmetricArray<sssp::Edge<D>> edges_;
  sssp::Frontier<D> frontier_;
  esker::Handler<Vertex<D>, D> lower_;          // --relax am
  std::optional<graph::EdgeSlots> edge_slots_;  // --relax put
  esker::SymmetricArray<D> slots_;
};

/// Collective. Throws a UsageError if a weight is negative. Whether weights are integers, and no way's
/// weights add up to what is none of 32 bits.
bool fit_integers(esker::Runtime& rt, const graph::DistributedGraph& graph) {
  double least[1] = {0}, most[1] = {0};  // those that are no integers count as infinite
  graph::for_each_chunk(rt, graph, [&](std::uint64_t, std::span<const graph::Edge> edges) {
    for (const graph::Edge& edge : edges) {
      least[0] = std::min(least[0], edge.weight);
      most[0] = std::max(most[0], edge.weight == std::floor(edge.weight) ? edge.weight : kFar<double>);
    }
  });
  rt.all_reduce(std::span<double>(least), esker::Reduction::kMin);
  rt.all_reduce(std::span<double>(most), esker::Reduction::kMax);
  harness::agree(rt, [&] {
    if (least[0] < 0) harness::usage("the graph has negative weights: --weights unit takes 1 for each");
  });
  return most[0] * static_cast<double>(graph.partition.vertices()) < static_cast<double>(kFar<std::uint32_t>);
}

/// Collective. The first vertex of those with the most edges, by its global id.
std::uint64_t busiest_vertex(esker::Runtime& rt, const graph::DistributedGraph& graph) {
  const std::vector<std::uint64_t> first = graph::read_first(rt, graph.first, graph.my_vertices);
  std::uint64_t most[1] = {0};
  for (std::uint64_t v = 0; v < graph.my_vertices; ++v) most[0] = std::max(most[0], first[v + 1] - first[v]);
  rt.all_reduce(std::span<std::uint64_t>(most), esker::Reduction::kMax);
  std::uint64_t id[1] = {graph.partition.vertices()};
  for (std::uint64_t v = 0; v < graph.my_vertices; ++v) {
    if (first[v + 1] - first[v] == most[0]) id[0] = std::min(id[0], graph.global_id(rt, v));
  }
  rt.all_reduce(std::span<std::uint64_t>(id), esker::Reduction::kMin);
  return id[0];
}

std::uint64_t source_vertex(esker::Runtime& rt, const graph::DistributedGraph& graph,
                            const std::string& name) {
  if (name == "auto" && graph.partition.vertices() > 0) return busiest_vertex(rt, graph);
  return harness::agree(rt, [&] {
    if (name == "auto") harness::usage("the graph has no vertices: none to start from");
    std::uint64_t id = 0;
    try {
      id = esker::parse_count(name);
    } catch (const std::invalid_argument& wrong) {
      harness::usage("--source: " + name + " " + wrong.what());
    }
    if (id >= graph.partition.vertices()) harness::usage("--source: the graph has no vertex " + name);
    return id;
  });
}

std::vector<double> dijkstra(const graph::SerialGraph& graph, std::uint64_t source) {
  std::vector<double> distances(graph.vertices(), kFar<double>);
  using Entry = std::pair<double, std::uint64_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  distances[source] = 0;
  open.push({0, source});
  while (!open.empty()) {
    const auto [distance, u] = open.top();
    open.pop();
    if (distance > distances[u]) continue;
    for (std::uint64_t e = graph.first[u]; e < graph.first[u + 1]; ++e) {
      const double through = distance + graph.weight[e];
      double& known = distances[graph.to[e]];
      if (through >= known) continue;
      known = through;
      open.push({through, graph.to[e]});
    }
  }
  return distances;
}

/// Collective. Runs it and reports.
template <class D>
int find_paths(esker::Runtime& rt, Options& o, const graph::EdgeSource& edges, const Graph& graph) {
  styles::Superstep superstep(rt, o.chosen_style());
  const std::uint64_t source = source_vertex(rt, graph, o.source);
  ShortestPaths<D> paths(rt, graph, o);
  std::uint64_t rounds = 0;
  nlohmann::json more = graph::facts(o.graph, graph);
  const auto measured = harness::measure(
      rt, superstep, o, [&] { paths.prepare(graph.place_of(source)); },
      [&] { rounds = paths.run(superstep); },
      [&] {
        const graph::SerialGraph whole = graph::load_serially(edges, o.graph.undirected, rt.host_threads());
        const harness::Stopwatch stopwatch;
        const std::vector<double> expected = dijkstra(whole, source);
        more["serial_seconds"] = stopwatch.seconds();
        more["reached"] =
            std::count_if(expected.begin(), expected.end(), [](double d) { return d < kFar<double>; });
        more["farthest"] = 0.0;
        for (const double d : expected) {
          if (d < kFar<double>) more["farthest"] = std::max(more["farthest"].get<double>(), d);
        }
        const std::vector<double> found = paths.distances();
        std::uint64_t wrong = 0;
        for (std::uint64_t v = 0; v < found.size(); ++v)
          wrong += found[v] != expected[graph.global_id(rt, v)] ? 1 : 0;
        return wrong;
      });
  graph::write_values<double>(rt, o, graph.partition,
                              o.output.empty() ? std::vector<double>() : paths.distances());
  more["relax"] = o.relax;
  more["weights"] = o.weights;
  more["delta"] = o.delta;
  more["distances"] = std::is_integral_v<D> ? "integers" : "doubles";
  more["source"] = source;
  more["rounds"] = rounds;
  return harness::finish(rt, o, "sssp", measured, static_cast<double>(graph.all_edges), "edges", more);
}

int run(int argc, char** argv) {
  Options o;
  esker::CommandLine line("esker-sssp", "Finds shortest paths in a graph distributed over the PEs.");
  o.add_to(line);
  o.graph.add_to(line, true);
  o.add_output_to(line,
                  "each vertex and its distance, inf without a way, in order of the vertices, from 0 on");
  line.add("relax", &o.relax, "how a way is offered: active message, or put into the edge's slot",
           {"am", "put"})
      .add("weights", &o.weights, "the graph's, 1 where it has none; or 1 everywhere", {"graph", "unit"})
      .add("source", &o.source, "the vertex to start from; auto: the first of those with the most edges")
      .add("delta", &o.delta, "relax vertices nearer than a threshold that rises so much at a time; 0: all");
  esker::Config config = o.parse(line, argc, argv);
  if (!(o.delta >= 0)) harness::usage("--delta is not negative");
  o.graph.complete(o.size);
  styles::configure(config, o.chosen_style());

  esker::Runtime rt(config);
  o.open(rt);
  const bool is_unit = o.weights == "unit";
  const graph::EdgeSource given(rt, o.graph, o.seed,
                                is_unit ? inputs::Weights::kIgnored : inputs::Weights::kUsed);
  const graph::EdgeSource edges = is_unit ? given.unweighted() : given;
  const auto graph =
      graph::load(rt, edges, graph::make_partition(rt, o.graph.partition, edges, o.seed), o.graph.undirected);
  return fit_integers(rt, graph) ? find_paths<std::uint32_t>(rt, o, edges, graph)
                                 : find_paths<double>(rt, o, edges, graph);
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-sssp", argc, argv, run); }
