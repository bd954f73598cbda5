// Colours a graph's vertices so that no edge joins two of one colour (Jones, Plassmann, SIAM J. Sci. Comput.
// 14, 1993).
//
// Invariant. Vertices have priorities, no two the same. Between rounds, the slot of an edge u -> v, at v's
// owner, says what v knows of u: to wait, if u comes first and has no colour yet; u's colour, if it has one;
// otherwise to ignore it. A vertex takes its colour when none of its slots says wait: the smallest that none
// of them holds. So each vertex sees the colours of exactly those neighbours that come first, and the result
// is the greedy colouring in falling order of priority, whatever the rounds.
#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <esker/esker.hpp>
#include <esker/lane.hpp>

#include "../graph/distributed_graph.hpp"
#include "../graph/edge_chunks.hpp"
#include "../graph/edge_slots.hpp"
#include "../graph/edge_traversal.hpp"
#include "../graph/partition.hpp"
#include "../graph/prefix_sums.hpp"
#include "../graph/serial_graph.hpp"
#include "../graph/vertex_values.hpp"
#include "../harness/application.hpp"
#include "../inputs/random.hpp"

namespace {

// What a slot says; below both, a colour. Before the first round, its other end's priority.
constexpr std::uint64_t kIgnore = ~std::uint64_t{0};
constexpr std::uint64_t kWait = kIgnore - 1;
constexpr std::uint64_t kNone = kIgnore;  // a vertex without a colour
// Of a lane that tells a colour, on a GPU: a message after the other is what most rounds wait for.
constexpr std::uint64_t kLeastEdges = 4;

struct Options : harness::Options {
  graph::Options graph;
};

/// A bijection of the global ids for each seed.
std::uint64_t priority_of(std::uint64_t global_id, std::uint64_t seed) {
  return inputs::mix(global_id ^ inputs::mix(seed + inputs::kStep));
}

/// What lanes work on.
struct Arrays {
  esker::SymmetricArray<graph::Location> slot_of_edge;
  esker::SymmetricArray<std::uint64_t> first_slot;
  esker::SymmetricArray<std::uint64_t> slots;
  esker::SymmetricArray<std::uint64_t> priorities;
  esker::SymmetricArray<std::uint64_t> colours;
  esker::SymmetricArray<std::uint64_t> waits;  // the first slot of a vertex that may say wait
  graph::EdgeChunks<std::uint64_t> chosen;     // by vertices that took a colour in this round: what they say
};

/// A lane tells the other ends of its edges the priorities of the vertices that these leave.
struct TellPriorities {
  using Message = styles::Put<std::uint64_t>;
  using State = graph::EdgeTraversal::State;
  Arrays arrays;
  graph::EdgeTraversal traversal;

  ESKER_HD State start(std::uint64_t id) const { return traversal.begin(id); }
  ESKER_HD bool next(State& state, Message& message) const {
    if (!traversal.step(state) && !traversal.next_row(state)) return false;
    const graph::Location slot = arrays.slot_of_edge[state.edge];
    message = {&arrays.slots[slot.index()], slot.pe(), arrays.priorities[state.vertex]};
    return true;
  }
};

/// A lane tells neighbours of a vertex, at the ends of a chunk of its edges, the colour that it took.
struct TellColours {
  using Message = styles::Put<std::uint64_t>;
  using State = graph::EdgeChunk<std::uint64_t>;
  Arrays arrays;

  ESKER_HD State start(std::uint64_t id) const { return arrays.chosen[id]; }
  ESKER_HD bool next(State& state, Message& message) const {
    if (state.edge == state.end) return false;
    const graph::Location slot = arrays.slot_of_edge[state.edge++];
    message = {&arrays.slots[slot.index()], slot.pe(), state.word};
    return true;
  }
};

/// A lane turns the priorities in its slots into what they mean to the slots' vertices.
struct Order {
  Arrays arrays;
  graph::EdgeTraversal traversal;  // over slots
  ESKER_HD void operator()(esker::Lane lane) const {
    for (auto state = traversal.begin(lane.global_id());
         traversal.step(state) || traversal.next_row(state);) {
      std::uint64_t& slot = arrays.slots[state.edge];
      slot = slot > arrays.priorities[state.vertex] ? kWait : kIgnore;
    }
  }
};

/// Lists that a round's lanes add to.
enum Length : std::uint64_t { kChosen, kWaiting, kLengths };

/// A lane looks at kRun vertices without a colour: they take one, or wait on.
template <std::uint64_t kRun>
struct Choose {
  Arrays arrays;
  std::uint64_t count;
  esker::SymmetricArray<std::uint64_t> waiting, still_waiting;
  esker::SymmetricArray<std::uint64_t> lengths, next_lengths;  // of this round, 0 before it; of the next

  ESKER_HD void operator()(esker::Lane lane) const {
    if (lane.global_id() == 0) next_lengths[kChosen] = next_lengths[kWaiting] = 0;
    if constexpr (kRun == 1) {  // compilers for GPUs add up the ones of a wave
      const std::uint64_t v = waiting[lane.global_id()];
      if (must_wait(v)) {
        still_waiting[reserve(kWaiting, 1)] = v;
      } else {
        take_colour(v);
        arrays.chosen.add(lengths[kChosen], v, arrays.colours[v]);
      }
    } else {
      look_at(lane.global_id() * kRun);
    }
  }

 private:
  ESKER_HD std::uint64_t reserve(Length list, std::uint64_t more) const {
    return reinterpret_cast<esker::DeviceAtomic<std::uint64_t>&>(lengths[list]).fetch_add_relaxed(more);
  }
  ESKER_HD void look_at(std::uint64_t first) const {
    const std::uint64_t end = count - first < kRun ? count : first + kRun;
    std::uint64_t wait = 0, chunks = 0;
    for (std::uint64_t i = first; i < end; ++i) {
      const std::uint64_t v = waiting[i];
      if (must_wait(v)) {
        ++wait;
      } else {
        take_colour(v);
        chunks += arrays.chosen.count(v);
      }
    }
    // In their order: neighbours stand together.
    std::uint64_t next_wait = reserve(kWaiting, wait), next_piece = reserve(kChosen, chunks);
    for (std::uint64_t i = first; i < end; ++i) {
      const std::uint64_t v = waiting[i];
      if (arrays.colours[v] == kNone) {
        still_waiting[next_wait++] = v;
      } else {
        next_piece = arrays.chosen.write(next_piece, v, arrays.colours[v]);
      }
    }
  }
  /// What has stopped to say wait never says it again.
  ESKER_HD bool must_wait(std::uint64_t v) const {
    const std::uint64_t end = arrays.first_slot[v + 1];
    std::uint64_t s = arrays.waits[v];
    while (s < end && arrays.slots[s] != kWait) ++s;
    arrays.waits[v] = s;
    return s < end;
  }
  ESKER_HD void take_colour(std::uint64_t v) const {
    arrays.colours[v] = smallest_free(arrays.first_slot[v], arrays.first_slot[v + 1]);
  }
  /// Of slots begin to end - 1, 64 colours at a time.
  ESKER_HD std::uint64_t smallest_free(std::uint64_t begin, std::uint64_t end) const {
    for (std::uint64_t base = 0;; base += 64) {
      std::uint64_t held = 0;
      for (std::uint64_t s = begin; s < end; ++s) {
        const std::uint64_t colour = arrays.slots[s] - base;  // those below wrap to something large
        if (colour < 64) held |= std::uint64_t{1} << colour;
      }
      if (held == ~std::uint64_t{0}) continue;
      std::uint64_t free = 0;
      while ((held >> free & 1) != 0) ++free;
      return base + free;
    }
  }
};

/// The computation on one PE.
class Colouring {
 public:
  Colouring(esker::Runtime& rt, const graph::DistributedGraph& graph, std::uint64_t seed)
      : rt_{rt}, graph_{graph}, edge_slots_{graph::make_edge_slots(rt, graph)} {
    const auto of_vertices = [&] { return rt.heap().allocate<std::uint64_t>(graph.most_vertices); };
    const auto slots = rt.heap().allocate<std::uint64_t>(edge_slots_.most);
    arrays_ = {edge_slots_.of_edge,
               edge_slots_.first,
               slots,
               of_vertices(),
               of_vertices(),
               of_vertices(),
               graph::EdgeChunks<std::uint64_t>::allocate(rt, graph, kLeastEdges)};
    waiting_ = of_vertices();
    still_waiting_ = of_vertices();
    for (auto& lengths : lengths_) lengths = rt.heap().allocate<std::uint64_t>(kLengths);
    std::vector<std::uint64_t> priorities(graph.my_vertices);
    for (std::uint64_t v = 0; v < priorities.size(); ++v)
      priorities[v] = priority_of(graph.global_id(rt, v), seed);
    write(arrays_.priorities, priorities);
  }

  void prepare() {
    std::vector<std::uint64_t> words(graph_.my_vertices, kNone);
    write(arrays_.colours, words);
    std::iota(words.begin(), words.end(), std::uint64_t{0});
    write(waiting_, words);
    words = graph::read_first(rt_, edge_slots_.first, graph_.my_vertices);
    my_slots_ = words.back();
    words.pop_back();
    write(arrays_.waits, words);
    write(lengths_[0], std::vector<std::uint64_t>(kLengths, 0));
  }

  /// Returns the rounds it took.
  std::uint64_t run(styles::Superstep& superstep) {
    const graph::EdgeTraversal edges(rt_, graph_.first, graph_.my_vertices, graph_.my_edges);
    superstep.run(edges.lanes(), TellPriorities{arrays_, edges}, "color-priorities");
    const graph::EdgeTraversal slots(rt_, edge_slots_.first, graph_.my_vertices, my_slots_);
    rt_.launch(slots.lanes(), Order{arrays_, slots}, "color-order");
    std::uint64_t rounds = 0;
    for (std::uint64_t waiting = graph_.my_vertices;; ++rounds) {
      std::array<std::uint64_t, kLengths> lengths{};
      if (waiting > 0) {
        const auto& mine = lengths_[rounds % 2];
        choose(waiting, mine, lengths_[(rounds + 1) % 2]);
        rt_.heap().read(mine, 0, std::span<std::uint64_t>(lengths));
      }
      waiting = lengths[kWaiting];
      std::swap(waiting_, still_waiting_);
      // Collective: colours reach slots when every PE has looked at its own.
      std::array<std::uint64_t, 1> left{waiting};
      rt_.all_reduce(std::span<std::uint64_t>(left), esker::Reduction::kSum);
      chosen_last_ = lengths[kChosen];
      if (left[0] == 0) return rounds + 1;
      superstep.run(lengths[kChosen], TellColours{arrays_}, "color");
    }
  }

  /// Collective, after run(): a priority and a colour along each edge, but from those who chose last.
  std::uint64_t puts() const {
    std::vector<graph::EdgeChunk<std::uint64_t>> untold(chosen_last_);
    rt_.heap().read(arrays_.chosen.chunks, 0, std::span(untold));
    std::uint64_t edges[1] = {2 * graph_.my_edges};
    for (const auto& chunk : untold) edges[0] -= chunk.end - chunk.edge;
    rt_.all_reduce(std::span<std::uint64_t>(edges), esker::Reduction::kSum);
    return edges[0];
  }

  std::vector<std::uint64_t> colours() const {
    std::vector<std::uint64_t> mine(graph_.my_vertices);
    rt_.heap().read(arrays_.colours, 0, std::span(mine));
    return mine;
  }

 private:
  void choose(std::uint64_t count, const esker::SymmetricArray<std::uint64_t>& lengths,
              const esker::SymmetricArray<std::uint64_t>& next_lengths) {
    graph::launch_runs(rt_, count, "color-choose", [&]<std::uint64_t kRun>() {
      return Choose<kRun>{arrays_, count, waiting_, still_waiting_, lengths, next_lengths};
    });
  }
  void write(esker::SymmetricArray<std::uint64_t> array, const std::vector<std::uint64_t>& words) {
    rt_.heap().write(array, 0, std::span<const std::uint64_t>(words));
  }

  esker::Runtime& rt_;
  const graph::DistributedGraph& graph_;
  graph::EdgeSlots edge_slots_;
  std::uint64_t my_slots_ = 0;
  std::uint64_t chosen_last_ = 0;  // chunks of the last round's list
  Arrays arrays_;
  esker::SymmetricArray<std::uint64_t> waiting_, still_waiting_;
  std::array<esker::SymmetricArray<std::uint64_t>, 2> lengths_;  // in turn
};

/// Takes vertices in the given order; each gets the smallest colour that no neighbour has.
std::vector<std::uint64_t> greedy(const graph::SerialGraph& graph, const std::vector<std::uint64_t>& order) {
  std::vector<std::uint64_t> colours(graph.vertices(), kNone);
  std::vector<std::uint64_t> last_user(graph.vertices() + 1, kNone);  // of a colour: a vertex that sees it
  for (const std::uint64_t v : order) {
    for (const std::uint32_t u : graph.neighbours(v)) {
      if (colours[u] != kNone) last_user[colours[u]] = v;
    }
    std::uint64_t colour = 0;
    while (last_user[colour] == v) ++colour;
    colours[v] = colour;
  }
  return colours;
}

std::vector<std::uint64_t> in_order(std::uint64_t vertices) {
  std::vector<std::uint64_t> order(vertices);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  return order;
}

std::vector<std::uint64_t> by_priority(std::uint64_t vertices, std::uint64_t seed) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranked(vertices);
  for (std::uint64_t v = 0; v < vertices; ++v) ranked[v] = {priority_of(v, seed), v};
  std::sort(ranked.begin(), ranked.end(), std::greater<>());
  std::vector<std::uint64_t> order(vertices);
  std::transform(ranked.begin(), ranked.end(), order.begin(), [](const auto& entry) { return entry.second; });
  return order;
}

std::uint64_t count_colours(const std::vector<std::uint64_t>& colours) {
  return colours.empty() ? 0 : *std::max_element(colours.begin(), colours.end()) + 1;
}

/// Of this PE's vertices, those with another colour than the serial greedy colouring's, or a neighbour's
/// colour.
std::uint64_t count_wrong(const esker::Runtime& rt, const graph::DistributedGraph& graph,
                          const graph::SerialGraph& whole, const std::vector<std::uint64_t>& found,
                          std::vector<std::uint64_t> expected) {
  std::uint64_t wrong = 0;
  for (std::uint64_t v = 0; v < found.size(); ++v) {
    std::uint64_t& colour = expected[graph.global_id(rt, v)];
    wrong += found[v] != colour ? 1 : 0;
    colour = found[v];
  }
  for (std::uint64_t v = 0; v < found.size(); ++v) {
    for (const std::uint32_t u : whole.neighbours(graph.global_id(rt, v)))
      wrong += expected[u] == found[v] ? 1 : 0;
  }
  return wrong;
}

int run(int argc, char** argv) {
  Options o;
  esker::CommandLine line("esker-color",
                          "Colours a graph distributed over the PEs, every edge in both directions.");
  o.add_to(line);
  o.graph.add_to(line, false);
  o.add_output_to(line, "each vertex and its colour, in order of the vertices; both count from 0");
  esker::Config config = o.parse(line, argc, argv);
  o.graph.complete(o.size);
  styles::configure(config, o.chosen_style());

  esker::Runtime rt(config);
  o.open(rt);
  styles::Superstep superstep(rt, o.chosen_style());
  const graph::EdgeSource source(rt, o.graph, o.seed, inputs::Weights::kIgnored);
  const auto graph =
      graph::load(rt, source, graph::make_partition(rt, o.graph.partition, source, o.seed), true);
  Colouring colouring(rt, graph, o.seed);
  std::uint64_t rounds = 0;
  nlohmann::json more = graph::facts(o.graph, graph);
  auto measured = harness::measure(
      rt, superstep, o, [&] { colouring.prepare(); }, [&] { rounds = colouring.run(superstep); },
      [&] {
        const graph::SerialGraph whole = graph::load_serially(source, true, rt.host_threads());
        const harness::Stopwatch stopwatch;
        const auto expected = greedy(whole, by_priority(whole.vertices(), o.seed));
        more["serial_seconds"] = stopwatch.seconds();
        const std::uint64_t first_fit = count_colours(greedy(whole, in_order(whole.vertices())));
        const auto found = colouring.colours();
        std::uint64_t colours[1] = {count_colours(found)};
        rt.all_reduce(std::span<std::uint64_t>(colours), esker::Reduction::kMax);
        more["colours"] = colours[0];
        more["first_fit_colours"] = first_fit;
        // One more, for first-fit may happen on the two colours of a mesh.
        const bool too_many = 2 * colours[0] > 3 * first_fit + 2;
        return count_wrong(rt, graph, whole, found, expected) + (too_many ? 1 : 0);
      });
  graph::write_values<std::uint64_t>(rt, o, graph.partition, colouring.colours());
  more["rounds"] = rounds;
  measured.accesses = colouring.puts();
  return harness::finish(rt, o, "color", measured, static_cast<double>(graph.all_edges), "edges", more);
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-color", argc, argv, run); }
