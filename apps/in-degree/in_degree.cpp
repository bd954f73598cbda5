// in-degree: counts the edges that lead to each vertex of a directed graph (thesis, Figure 5-6).
//
// Invariant. The counter of vertex v is word v / n_pes of PE v % n_pes. PE p has part p of the stream of
// edges, sorted by the vertex that they leave: list k is targets[first[k]] up to targets[first[k + 1]], and
// only vertices that have edges there have a list. A lane reads one list; a few are long. With --split edges
// each lane has as many edges as any other. Any PE can read any part again: it counts those edges that lead
// to vertices that it owns.
#include <algorithm>
#include <boost/sort/block_indirect_sort/block_indirect_sort.hpp>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <esker/esker.hpp>

#include "../graph/edge_source.hpp"
#include "../graph/edge_traversal.hpp"
#include "../harness/application.hpp"
#include "../harness/fill.hpp"
#include "../harness/team.hpp"
#include "../styles/election.hpp"

namespace {

struct Options : harness::Options {
  graph::SourceOptions graph;
  std::string split = "lists";
  std::string election = "auto";
};

using Ends = std::pair<std::uint64_t, std::uint64_t>;

/// This PE's edges as lists, on the heap.
struct Lists {
  esker::SymmetricArray<std::uint64_t> first, targets;
  std::uint64_t size = 0;
  std::uint64_t edges = 0;
  std::uint64_t longest = 0;

  /// Of the edges as they were read, in host memory.
  std::uint64_t read_bytes() const { return edges * sizeof(Ends); }
};

esker::SymmetricArray<std::uint64_t> allocate_most(esker::Runtime& rt, std::uint64_t mine) {
  std::uint64_t most[1] = {mine};
  rt.all_reduce(std::span<std::uint64_t>(most), esker::Reduction::kMax);
  return rt.heap().allocate<std::uint64_t>(std::max<std::uint64_t>(1, most[0]));
}

/// Collective. This PE's part of the edges, sorted: read twice by all its threads, each into a list of its
/// own.
std::vector<Ends> sorted_edges(esker::Runtime& rt, const graph::EdgeSource& source) {
  const std::uint32_t readers = source.readers(rt);
  const auto part = [&](std::uint32_t t) { return inputs::nested({rt.pe(), rt.n_pes()}, {t, readers}); };
  std::vector<std::uint64_t> first(readers + 1);
  harness::run_team(readers, [&](std::uint32_t t) {
    std::uint64_t count = 0;
    source.for_each_edge(part(t), [&](const inputs::Edge&) { ++count; });
    first[t + 1] = count;
  });
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<Ends> edges(first.back());
  harness::run_team(readers, [&](std::uint32_t t) {
    std::uint64_t at = first[t];
    source.for_each_edge(part(t), [&](const inputs::Edge& edge) { edges[at++] = {edge.from, edge.to}; });
  });
  boost::sort::block_indirect_sort(edges.begin(), edges.end(), rt.host_threads());
  return edges;
}

/// Collective.
Lists lists_of(esker::Runtime& rt, const graph::EdgeSource& source) {
  const std::vector<Ends> edges = sorted_edges(rt, source);
  Lists lists;
  lists.edges = edges.size();
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

std::vector<std::uint64_t> expected_counts(const graph::EdgeSource& source, std::uint64_t words,
                                           std::uint32_t pes, std::uint32_t me) {
  std::vector<std::uint64_t> counts(words);
  source.for_each_edge({}, [&](const inputs::Edge& edge) {
    if (edge.to % pes == me) ++counts[edge.to / pes];
  });
  return counts;
}

int run(int argc, char** argv) {
  Options o;
  esker::CommandLine line("esker-in-degree", "Counts the edges that lead to each vertex of a graph.");
  o.add_to(line);
  o.graph.add_to(line);
  o.add_output_to(line, "each vertex and its in-degree, in order of the vertices, which count from 0");
  line.add("split", &o.split,
           "what a lane takes: the edges that leave a vertex, as the thesis; or so many edges",
           {"lists", "edges"})
      .add("election", &o.election, "how lanes share a package", styles::elections());
  esker::Config config = o.parse(line, argc, argv);
  o.graph.complete(o.size);
  styles::require_election(o.chosen_style(), o.election);
  styles::configure(config, o.chosen_style());

  esker::Runtime rt(config);
  o.open(rt);
  styles::Superstep superstep(rt, o.chosen_style());
  const graph::EdgeSource source(rt, o.graph, o.seed, inputs::Weights::kIgnored);
  harness::doing("sorting the edges", "more PEs");
  const Lists lists = lists_of(rt, source);
  std::uint64_t edges[1] = {lists.edges}, longest[1] = {lists.longest};
  rt.all_reduce(std::span<std::uint64_t>(edges), esker::Reduction::kSum);
  rt.all_reduce(std::span<std::uint64_t>(longest), esker::Reduction::kMax);
  const std::uint64_t words = (source.vertices() + rt.n_pes() - 1) / rt.n_pes();
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
        const auto expected = expected_counts(source, words, rt.n_pes(), rt.pe());
        const auto counted = rt.heap().read(counters);
        std::uint64_t wrong = 0;
        for (std::uint64_t i = 0; i < counted.size(); ++i) wrong += counted[i] != expected[i] ? 1 : 0;
        return wrong;
      });
  const auto counted = o.output.empty() ? std::vector<std::uint64_t>{} : rt.heap().read(counters);
  o.write_output(
      rt, source.vertices(),
      [&](std::uint64_t v) { return v % rt.n_pes() == rt.pe() ? counted[v / rt.n_pes()] : 0; },
      [](std::string& text, std::uint64_t v, std::uint64_t edges_to_v) {
        fmt::format_to(std::back_inserter(text), "{} {}\n", v, edges_to_v);
      });
  measured.input_bytes = lists.read_bytes();
  return harness::finish(rt, o, "in-degree", measured, static_cast<double>(edges[0]), "edges",
                         {{"graph", o.graph.graph},
                          {"vertices", source.vertices()},
                          {"longest_list", longest[0]},
                          {"split", o.split},
                          {"election", o.election}});
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-in-degree", argc, argv, run); }
