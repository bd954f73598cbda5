// in-degree: counts the edges that lead to each vertex of a directed graph (thesis, Figure 5-6).
//
// Invariant. The counter of vertex v is word v / n_pes of PE v % n_pes. PE p has part p of the stream of
// edges, sorted by the vertex that they leave: list k is targets[first[k]] up to targets[first[k + 1]], and
// only vertices that have edges there have a list. A lane walks one list; a few are long. With --split edges
// each lane has as many edges as any other. Any PE can read any part again: it counts those edges that lead
// to vertices that it owns.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <esker/esker.hpp>

#include "../graph/edge_walk.hpp"
#include "../harness/application.hpp"
#include "../harness/fill.hpp"
#include "../inputs/graph/graph_file.hpp"
#include "../inputs/graph/random_graphs.hpp"
#include "../styles/election.hpp"

namespace {

struct Options : harness::Options {
  std::string graph = "kronecker";
  std::uint64_t scale = 0;  // 0: as --size says
  std::uint64_t degree = inputs::kGapDegree;
  std::string input;
  std::string split = "lists";
  std::string election = "auto";
};

/// The stream of edges, generated or a file.
class Graph {
 public:
  explicit Graph(const Options& o) {
    const auto scale = static_cast<unsigned>(o.scale);
    if (!o.input.empty()) {
      file_ = std::make_unique<inputs::GraphFile>(o.input);
    } else if (o.graph == "uniform") {
      random_ = std::make_unique<inputs::UniformRandom>(scale, o.degree, o.seed);
    } else {
      random_ = std::make_unique<inputs::Kronecker>(scale, o.degree, o.seed);
    }
  }
  inputs::EdgeCount for_each_edge(inputs::Part part, const inputs::EdgeVisitor& visit) const {
    if (file_) return file_->for_each_edge(part, visit);
    random_->for_each_edge(part, visit);
    const std::uint64_t edges = inputs::range_of(random_->edges(), part).size();
    return {edges, edges, random_->vertices()};
  }
  /// Collective. Of the whole graph, from each PE's part.
  inputs::EdgeCount total(esker::Runtime& rt, const inputs::EdgeCount& mine) const {
    std::uint64_t sums[2] = {mine.entries, mine.edges};
    std::uint64_t most[1] = {mine.vertices};
    rt.all_reduce(std::span<std::uint64_t>(sums), esker::Reduction::kSum);
    rt.all_reduce(std::span<std::uint64_t>(most), esker::Reduction::kMax);
    const inputs::EdgeCount all{sums[0], sums[1], most[0]};
    if (file_) file_->check(all);
    return all;
  }

 private:
  std::unique_ptr<inputs::GraphFile> file_;
  std::unique_ptr<inputs::RandomGraph> random_;
};

/// This PE's edges as lists, on the heap.
struct Lists {
  esker::SymmetricArray<std::uint64_t> first, targets;
  inputs::EdgeCount count;
  std::uint64_t size = 0;
  std::uint64_t edges = 0;
  std::uint64_t longest = 0;

  /// Of the edges as they were read, in host memory.
  std::uint64_t read_bytes() const { return edges * sizeof(std::pair<std::uint64_t, std::uint64_t>); }
};

esker::SymmetricArray<std::uint64_t> allocate_most(esker::Runtime& rt, std::uint64_t mine) {
  std::uint64_t most[1] = {mine};
  rt.all_reduce(std::span<std::uint64_t>(most), esker::Reduction::kMax);
  return rt.heap().allocate<std::uint64_t>(std::max<std::uint64_t>(1, most[0]));
}

/// Collective.
Lists lists_of(esker::Runtime& rt, const Graph& graph) {
  const inputs::Part part{rt.pe(), rt.n_pes()};
  Lists lists;
  lists.count = graph.for_each_edge(part, [&](const inputs::Edge&) { ++lists.edges; });
  std::vector<std::pair<std::uint64_t, std::uint64_t>> edges;
  edges.reserve(lists.edges);
  (void)graph.for_each_edge(part, [&](const inputs::Edge& edge) { edges.emplace_back(edge.from, edge.to); });
  std::sort(edges.begin(), edges.end());
  lists.targets = allocate_most(rt, edges.size());
  harness::fill(rt, lists.targets, edges.size(), [&](std::uint64_t i) { return edges[i].second; });
  const auto begins = [&](std::uint64_t i) { return i == 0 || edges[i].first != edges[i - 1].first; };
  for (std::uint64_t i = 0; i < edges.size(); ++i) lists.size += begins(i) ? 1 : 0;
  lists.first = allocate_most(rt, lists.size + 1);
  std::uint64_t at = 0;
  harness::fill(rt, lists.first, lists.size + 1, [&, begin = std::uint64_t{0}](std::uint64_t) mutable {
    while (at < edges.size() && !begins(at)) ++at;
    lists.longest = std::max(lists.longest, at - std::exchange(begin, at));
    return at++;
  });
  return lists;
}

/// A lane counts some of the targets.
struct CountTargets {
  using Message = styles::Inc<std::uint64_t>;
  struct State {
    std::uint64_t next, end;
  };
  esker::SymmetricArray<std::uint64_t> targets;
  esker::SymmetricArray<std::uint64_t> counters;
  std::uint32_t pes;

  ESKER_HD Message message_to(std::uint64_t target) const {
    return {&counters[target / pes], static_cast<std::uint32_t>(target % pes)};
  }
};

/// --split lists: those of its list.
struct CountLists : CountTargets {
  esker::SymmetricArray<std::uint64_t> first;

  ESKER_HD State start(std::uint64_t id) const { return {first[id], first[id + 1]}; }
  ESKER_HD std::uint32_t messages(const State& state) const {
    return static_cast<std::uint32_t>(state.end - state.next);
  }
  ESKER_HD bool next(State& state, Message& message) const {
    if (state.next == state.end) return false;
    message = message_to(targets[state.next++]);
    return true;
  }
};

/// --split edges: as many as any other lane.
struct CountEdges : CountTargets {
  graph::EdgeSplit split;

  ESKER_HD State start(std::uint64_t id) const { return {split.begin(id), split.end(id)}; }
  ESKER_HD std::uint32_t messages(const State& state) const {
    if (state.next >= state.end) return 0;
    return static_cast<std::uint32_t>((state.end - state.next + split.stride - 1) / split.stride);
  }
  ESKER_HD bool next(State& state, Message& message) const {
    if (state.next >= state.end) return false;
    message = message_to(targets[state.next]);
    state.next += split.stride;
    return true;
  }
};

std::vector<std::uint64_t> expected_counts(const Graph& graph, std::uint64_t words, std::uint32_t pes,
                                           std::uint32_t me) {
  std::vector<std::uint64_t> counts(words);
  graph.for_each_edge({}, [&](const inputs::Edge& edge) {
    if (edge.to % pes == me) ++counts[edge.to / pes];
  });
  return counts;
}

int run(int argc, char** argv) {
  Options o;
  esker::CommandLine line("esker-in-degree", "Counts the edges that lead to each vertex of a graph.");
  o.add_to(line);
  line.add("graph", &o.graph, "which graph to generate", {"kronecker", "uniform"})
      .add("scale", &o.scale, "it has 2^scale vertices; 0: as --size says")
      .add("degree", &o.degree, "and so many edges a vertex")
      .add("input", &o.input, "edges of this file instead: .mtx, .el, .wel, .sg, .wsg")
      .add("split", &o.split,
           "what a lane takes: the edges that leave a vertex, as the thesis; or so many edges",
           {"lists", "edges"})
      .add("election", &o.election, "how lanes share a package", styles::elections());
  esker::Config config = line.parse(argc, argv);
  if (o.scale == 0) o.scale = o.size == "small" ? 14 : o.size == "medium" ? 20 : 23;
  if (o.scale > 40) harness::usage("--scale is 1 to 40");
  if (o.degree == 0 || o.degree > std::uint64_t{1} << 20) harness::usage("--degree is 1 to 2^20");
  styles::require_election(o.chosen_style(), o.election);
  styles::configure(config, o.chosen_style());

  esker::Runtime rt(config);
  styles::Superstep superstep(rt, o.chosen_style());
  const Graph graph(o);
  const Lists lists = lists_of(rt, graph);
  const inputs::EdgeCount total = graph.total(rt, lists.count);
  std::uint64_t longest[1] = {lists.longest};
  rt.all_reduce(std::span<std::uint64_t>(longest), esker::Reduction::kMax);
  const std::uint64_t words = (total.vertices + rt.n_pes() - 1) / rt.n_pes();
  const auto counters = rt.heap().allocate<std::uint64_t>(words);
  const CountTargets count{lists.targets, counters, rt.n_pes()};
  const auto split = graph::EdgeSplit::of(rt, lists.edges);
  auto measured = harness::measure(
      rt, superstep, o, [&] { harness::clear(rt, counters); },
      [&] {
        if (o.split == "edges") {
          styles::run_elected(rt, superstep, o.election, split.lanes(), CountEdges{count, split},
                              "in-degree");
        } else {
          styles::run_elected(rt, superstep, o.election, lists.size, CountLists{count, lists.first},
                              "in-degree");
        }
      },
      [&] {
        const auto expected = expected_counts(graph, words, rt.n_pes(), rt.pe());
        const auto counted = rt.heap().read(counters);
        std::uint64_t wrong = 0;
        for (std::uint64_t i = 0; i < counted.size(); ++i) wrong += counted[i] != expected[i] ? 1 : 0;
        return wrong;
      });
  measured.input_bytes = lists.read_bytes();
  return harness::finish(rt, o, "in-degree", measured, static_cast<double>(total.edges), "edges",
                         {{"graph", o.input.empty() ? o.graph : o.input},
                          {"vertices", total.vertices},
                          {"longest_list", longest[0]},
                          {"split", o.split},
                          {"election", o.election}});
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-in-degree", argc, argv, run); }
