// Single-source shortest paths: the least sum of weights on a way from the source to each vertex.
//
// Invariant. Distances are doubles. A way's length is its weights added from the source on, each sum rounded.
// Rounding keeps order and weights are not negative, so the least length of all ways to a vertex is one
// number in whatever order ways are tried: relaxation in any order and Dijkstra's algorithm end with the same
// bits. Between rounds, a vertex's distance is the length of some way to it, or infinity; every vertex whose
// distance has fallen since it was relaxed is in one of the frontier's lists.
#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <esker/command_line.hpp>
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

struct Options : harness::Options {
  graph::Options graph;
  std::string relax = "am";
  std::string weights = "graph";
  std::string source = "auto";
  double delta = 0;
};

/// At the other end of an edge, by active message: the least distance stays.
struct Lower {
  static constexpr std::uint64_t kOwnershipBytes = 0;  // Lists::lower() is all atomics
  sssp::Lists lists;
  ESKER_HD bool is_needless(const Vertex& vertex, const double& candidate) const {
    return !(candidate < vertex.distance_now());
  }
  ESKER_HD void operator()(esker::HandlerContext& /*context*/, Vertex& vertex,
                           const double& candidate) const {
    lists.lower(vertex, candidate);
  }
};

/// A lane offers neighbours of one taken vertex, at the ends of a chunk of its edges, a way through it.
struct Offer {
  struct State {
    std::uint64_t edge, end;
    double distance;
  };
  esker::SymmetricArray<graph::Edge> edges;
  sssp::Taken taken;

  ESKER_HD State start(std::uint64_t id) const {
    const sssp::Taken::Chunk& mine = taken[id];
    return {mine.edge, mine.end, mine.word};
  }
};

/// Most ways are no shorter than the vertex's distance, which a lane knows of this PE's vertices, or than
/// what this PE has offered already, which it knows of others'. Such a way is not offered. What two lanes
/// remember at once may be the longer of the two: then a needless way is offered, and none is missed.
struct OfferByMessage : Offer {
  using Message = styles::Call<Vertex, double>;
  esker::SymmetricArray<Vertex> vertices;
  esker::Handler<Vertex, double> lower;
  esker::SymmetricArray<std::uint32_t> remote_endpoints;
  esker::SymmetricArray<double> offered;  // to remote endpoints, the least
  std::uint32_t me;

  ESKER_HD bool is_needless(const graph::Location& to, std::uint64_t edge, double candidate) const {
    if (to.pe() == me) return !(candidate < vertices[to.index()].distance_now());
    auto& least = reinterpret_cast<esker::DeviceAtomic<double>&>(offered[remote_endpoints[edge]]);
    if (!(candidate < least.load_relaxed())) return true;
    least.store_relaxed(candidate);
    return false;
  }
  ESKER_HD bool next(State& state, Message& message) const {
    while (state.edge != state.end) {
      const std::uint64_t edge = state.edge++;
      const graph::Location to = edges[edge].to;
      const double candidate = state.distance + edges[edge].weight;
      if (is_needless(to, edge, candidate)) continue;
      message = {&vertices[to.index()], to.pe(), lower, candidate};
      return true;
    }
    return false;
  }
};

/// Slots hold the last, and so the least, distance that came along their edge.
struct OfferByPut : Offer {
  using Message = styles::Put<double>;
  esker::SymmetricArray<graph::Location> slot_of_edge;
  esker::SymmetricArray<double> slots;

  ESKER_HD bool next(State& state, Message& message) const {
    if (state.edge == state.end) return false;
    const graph::Location slot = slot_of_edge[state.edge];
    message = {&slots[slot.index()], slot.pe(), state.distance + edges[state.edge].weight};
    ++state.edge;
    return true;
  }
};

/// A lane takes the least of its vertex's slots.
struct LowerFromSlots {
  sssp::Lists lists;
  esker::SymmetricArray<std::uint64_t> first_slot;
  esker::SymmetricArray<double> slots;
  ESKER_HD void operator()(esker::Lane lane) const {
    const std::uint64_t v = lane.global_id();
    double least = kFar;
    for (std::uint64_t s = first_slot[v]; s < first_slot[v + 1]; ++s)
      least = slots[s] < least ? slots[s] : least;
    lists.lower(lists.vertices[v], least);
  }
};

/// The computation on one PE.
class ShortestPaths {
 public:
  ShortestPaths(esker::Runtime& rt, const graph::DistributedGraph& graph, const Options& o)
      : rt_{rt}, graph_{graph}, frontier_{rt, graph, o.delta} {
    if (o.relax == "put") {
      edge_slots_ = graph::make_edge_slots(rt, graph);
      slots_ = rt.heap().allocate<double>(edge_slots_->most);
    } else {
      lower_ = rt.register_handler<Vertex, double>("sssp-lower", Lower{frontier_.lists()});
      far_ends_ = graph::make_remote_endpoints(rt, graph);
      offered_ = rt.heap().allocate<double>(far_ends_.most);
    }
  }

  void prepare(graph::Location source) {
    frontier_.start(source.pe() == rt_.pe(), source.index());
    const auto memory = edge_slots_ ? slots_ : offered_;
    harness::fill(rt_, memory, memory.size(), [](std::uint64_t) { return kFar; });
  }

  /// Returns the rounds it took.
  std::uint64_t run(styles::Superstep& superstep) {
    const sssp::Lists& lists = frontier_.lists();
    const Offer offer{graph_.edges, lists.taken};
    std::uint64_t rounds = 0;
    for (; frontier_.take(); ++rounds) {
      if (edge_slots_) {
        superstep.run(frontier_.taken(), OfferByPut{offer, edge_slots_->of_edge, slots_}, "sssp");
        rt_.launch(graph_.my_vertices, LowerFromSlots{lists, edge_slots_->first, slots_}, "sssp-lower");
      } else {
        superstep.run(frontier_.taken(),
                      OfferByMessage{offer, lists.vertices, lower_, far_ends_.of_edge, offered_, rt_.pe()},
                      "sssp");
      }
    }
    return rounds;
  }

  std::vector<Vertex> vertices() const {
    std::vector<Vertex> mine(graph_.my_vertices);
    rt_.heap().read(frontier_.lists().vertices, 0, std::span(mine));
    return mine;
  }

 private:
  esker::Runtime& rt_;
  const graph::DistributedGraph& graph_;
  sssp::Frontier frontier_;
  esker::Handler<Vertex, double> lower_;  // --relax am, and the next two
  graph::RemoteEndpoints far_ends_;
  esker::SymmetricArray<double> offered_;
  std::optional<graph::EdgeSlots> edge_slots_;  // --relax put
  esker::SymmetricArray<double> slots_;
};

/// Collective. Throws a UsageError if a weight is negative.
void check_weights(esker::Runtime& rt, const graph::DistributedGraph& graph) {
  double least[1] = {0};
  graph::for_each_chunk(rt, graph, [&](std::uint64_t, std::span<const graph::Edge> edges) {
    for (const graph::Edge& edge : edges) least[0] = std::min(least[0], edge.weight);
  });
  rt.all_reduce(std::span<double>(least), esker::Reduction::kMin);
  harness::agree(rt, [&] {
    if (least[0] < 0) harness::usage("the graph has negative weights: --weights unit takes 1 for each");
  });
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
  if (name == "auto") return busiest_vertex(rt, graph);
  return harness::agree(rt, [&] {
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
  std::vector<double> distances(graph.vertices(), kFar);
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
  styles::Superstep superstep(rt, o.chosen_style());
  const bool is_unit = o.weights == "unit";
  const graph::EdgeSource given(rt, o.graph, o.seed,
                                is_unit ? inputs::Weights::kIgnored : inputs::Weights::kUsed);
  const graph::EdgeSource edges = is_unit ? given.unweighted() : given;
  const auto graph =
      graph::load(rt, edges, graph::make_partition(rt, o.graph.partition, edges, o.seed), o.graph.undirected);
  check_weights(rt, graph);
  const std::uint64_t source = source_vertex(rt, graph, o.source);
  ShortestPaths paths(rt, graph, o);
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
        more["reached"] = std::count_if(expected.begin(), expected.end(), [](double d) { return d < kFar; });
        more["farthest"] = 0.0;
        for (const double d : expected) {
          if (d < kFar) more["farthest"] = std::max(more["farthest"].get<double>(), d);
        }
        const std::vector<Vertex> found = paths.vertices();
        std::uint64_t wrong = 0;
        for (std::uint64_t v = 0; v < found.size(); ++v)
          wrong += found[v].distance != expected[graph.global_id(rt, v)] ? 1 : 0;
        return wrong;
      });
  std::vector<double> distances;
  if (!o.output.empty()) {
    for (const Vertex& vertex : paths.vertices()) distances.push_back(vertex.distance);
  }
  graph::write_values<double>(rt, o, graph.partition, distances);
  more["relax"] = o.relax;
  more["weights"] = o.weights;
  more["delta"] = o.delta;
  more["source"] = source;
  more["rounds"] = rounds;
  return harness::finish(rt, o, "sssp", measured, static_cast<double>(graph.all_edges), "edges", more);
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-sssp", argc, argv, run); }
