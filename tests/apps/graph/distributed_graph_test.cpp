// Graphs over PEs that are threads, against the same graph on one PE.
#include <esker/apps/graph/distributed_graph.hpp>
#include <esker/apps/graph/edge_readers.hpp>
#include <esker/apps/graph/edge_slots.hpp>
#include <esker/apps/graph/mirrors.hpp>
#include <esker/apps/graph/partition.hpp>
#include <esker/apps/graph/prefix_sums.hpp>
#include <esker/apps/graph/remote_endpoints.hpp>
#include <esker/apps/graph/serial_graph.hpp>
#include <esker/apps/harness/team.hpp>
#include <esker/apps/inputs/random.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../../runtime/pes.hpp"

namespace graph::testing {
namespace {

using esker::Runtime;
using esker::testing::Pes;

esker::Config config_of() {
  esker::Config config = esker::testing::tiny_config();
  config.heap_bytes = 8 << 20;
  return config;
}

/// Loops, duplicates of other weights, vertices without edges, and a vertex that a third of the edges leave.
EdgeSource awkward(std::uint64_t vertices, std::uint64_t edges, std::uint64_t seed) {
  return {vertices, [=](inputs::Part part, const inputs::EdgeVisitor& visit) {
            const inputs::Random random(seed);
            const inputs::Range mine = range_of(edges, part);
            for (std::uint64_t i = mine.begin; i < mine.end; ++i) {
              const auto draw = random.stream(i);
              const std::uint64_t from = i % 3 == 0 ? 0 : inputs::scaled(draw[0], (vertices + 1) / 2);
              visit({from, inputs::scaled(draw[1], vertices), 1 + static_cast<double>(draw[2] % 4)});
            }
          }};
}

using Row = std::map<std::uint64_t, double>;  // weight by the other end's global id

Row row_of(const SerialGraph& graph, std::uint64_t v) {
  Row row;
  for (std::uint64_t e = graph.first[v]; e < graph.first[v + 1]; ++e) row[graph.to[e]] = graph.weight[e];
  return row;
}

/// Every vertex has the edges of the serial graph, in order.
void expect_same(Runtime& rt, const DistributedGraph& graph, const SerialGraph& expected) {
  const auto first = read_first(rt, graph.first, graph.my_vertices);
  const auto edges = rt.heap().read(graph.edges);
  EXPECT_EQ(graph.my_edges, first.back());
  EXPECT_EQ(graph.all_edges, expected.to.size());
  std::uint64_t cut = 0;
  for (std::uint64_t v = 0; v < graph.my_vertices; ++v) {
    const std::uint64_t id = graph.global_id(rt, v);
    Row row;
    for (std::uint64_t e = first[v]; e < first[v + 1]; ++e) {
      EXPECT_TRUE(e == first[v] || edges[e - 1].to < edges[e].to);
      row[graph.partition.global_id(edges[e].to.pe(), edges[e].to.index())] = edges[e].weight;
      cut += edges[e].to.pe() != rt.pe() ? 1 : 0;
    }
    EXPECT_EQ(row, row_of(expected, id)) << "vertex " << id;
  }
  std::uint64_t all_cut[1] = {cut};
  rt.all_reduce(std::span<std::uint64_t>(all_cut), esker::Reduction::kSum);
  EXPECT_EQ(graph.cut * static_cast<double>(graph.all_edges), static_cast<double>(all_cut[0]));
}

struct PushEdgeIds {
  EdgeSlots slots;
  esker::SymmetricArray<std::uint64_t> held;
  ESKER_HD void operator()(esker::WorkItem item) const {
    const Location slot = slots.of_edge[item.global_id()];
    const Location word(item.pe(), item.global_id() + 1);
    std::uint64_t value = 0;
    __builtin_memcpy(&value, &word, sizeof value);
    esker::shmem_put(item, &held[slot.index()], value, slot.pe());
  }
};

/// Each edge puts its name into its slot: each slot of a vertex then has the name of another edge to it.
void expect_slots(Runtime& rt, const DistributedGraph& graph, const SerialGraph& whole) {
  const EdgeSlots slots = make_edge_slots(rt, graph);
  const auto held = rt.heap().allocate<std::uint64_t>(slots.most);
  rt.launch(graph.my_edges, PushEdgeIds{slots, held});
  rt.barrier_all();
  const auto first = read_first(rt, slots.first, graph.my_vertices);
  const auto names = rt.heap().read(held);
  const SerialGraph in = reversed(whole);
  for (std::uint64_t v = 0; v < graph.my_vertices; ++v) {
    const std::uint64_t id = graph.global_id(rt, v);
    std::map<std::uint64_t, int> seen;
    for (std::uint64_t s = first[v]; s < first[v + 1]; ++s) ++seen[names[s]];
    EXPECT_EQ(seen.count(0), 0u) << "a slot of vertex " << id << " is nobody's";
    EXPECT_EQ(seen.size(), in.degree(id)) << "vertex " << id;
    EXPECT_EQ(first[v + 1] - first[v], in.degree(id)) << "vertex " << id;
  }
}

/// As many names as a put of mirrors takes.
struct alignas(sizeof(std::uint32_t) * Mirrors::kRun) Names {
  std::uint32_t of[Mirrors::kRun];
};

/// A lane puts its run's names to their mirrors.
struct PushNames {
  esker::SymmetricArray<std::uint32_t> sent;
  esker::SymmetricArray<Location> mirrors;
  esker::SymmetricArray<Names> held;
  ESKER_HD void operator()(esker::WorkItem item) const {
    const std::uint64_t run = item.global_id();
    Names names{};
    for (std::uint64_t i = 0; i < Mirrors::kRun; ++i) {
      const std::uint32_t v = sent[run * Mirrors::kRun + i];
      names.of[i] = held[v / Mirrors::kRun].of[v % Mirrors::kRun];
    }
    const Location mirror = mirrors[run];
    esker::shmem_put(item, &held[mirror.index() / Mirrors::kRun], names, mirror.pe());
  }
};

/// Each edge finds the name, its global id and 1, of the vertex that it leaves. A PE has one mirror, but for
/// what fills up a run, of each vertex with edges to its own, and none of others.
void expect_mirrors(Runtime& rt, const DistributedGraph& graph, const SerialGraph& whole) {
  const Mirrors mirrors = make_mirrors(rt, graph);
  ASSERT_EQ(mirrors.size % Mirrors::kRun, 0u);
  const auto held = rt.heap().allocate<Names>(mirrors.size / Mirrors::kRun);
  const esker::SymmetricArray<std::uint32_t> each(&held[0].of[0], mirrors.size);
  std::vector<std::uint32_t> mine(graph.my_vertices);
  for (std::uint64_t v = 0; v < graph.my_vertices; ++v)
    mine[v] = static_cast<std::uint32_t>(graph.global_id(rt, v) + 1);
  rt.heap().write(each, 0, std::span<const std::uint32_t>(mine));
  rt.launch(mirrors.last.size(), PushNames{mirrors.sent, mirrors.mirrors, held});
  rt.barrier_all();

  const auto first = read_first(rt, mirrors.first_in, graph.my_vertices);
  const auto source_of = rt.heap().read(mirrors.source_of);
  const auto names = rt.heap().read(each);
  const SerialGraph in = reversed(whole);
  std::set<std::uint32_t> elements, remote;
  for (std::uint64_t v = 0; v < graph.my_vertices; ++v) {
    std::multiset<std::uint64_t> expected, found;
    for (const std::uint32_t u : in.neighbours(graph.global_id(rt, v))) {
      expected.insert(u + 1);
      if (graph.place_of(u).pe() != rt.pe()) remote.insert(u);
    }
    for (std::uint64_t e = first[v]; e < first[v + 1]; ++e) {
      found.insert(names[source_of[e]]);
      if (source_of[e] >= graph.most_vertices) elements.insert(source_of[e]);
    }
    EXPECT_EQ(found, expected) << "vertex " << graph.global_id(rt, v);
  }
  EXPECT_EQ(elements.size(), remote.size());
  EXPECT_TRUE(std::is_sorted(mirrors.last.begin(), mirrors.last.end()));
  const auto sent = rt.heap().read(mirrors.sent);
  for (std::size_t r = 0; r < mirrors.last.size(); ++r)
    EXPECT_EQ(mirrors.last[r], sent[(r + 1) * Mirrors::kRun - 1]) << "run " << r;
  std::uint64_t all[1] = {mirrors.last.size()};
  rt.all_reduce(std::span<std::uint64_t>(all), esker::Reduction::kSum);
  EXPECT_EQ(mirrors.runs_of_all, all[0]);
}

/// An edge's endpoint is the PE's vertex, or says where the vertex is: one number each.
void expect_remote_endpoints(Runtime& rt, const DistributedGraph& graph) {
  const RemoteEndpoints endpoints = make_remote_endpoints(rt, graph);
  const auto locations = rt.heap().read(endpoints.locations);
  const auto edges = rt.heap().read(graph.edges);
  EXPECT_EQ(endpoints.first, graph.most_vertices);
  std::set<std::uint32_t> remote;
  for (std::uint64_t e = 0; e < graph.my_edges; ++e) {
    const Location to = edges[e].to;
    const std::uint32_t endpoint = endpoints.endpoint_of(rt, to);
    ASSERT_LT(endpoint, endpoints.size());
    if (to.pe() == rt.pe()) {
      EXPECT_EQ(endpoint, to.index());
    } else {
      ASSERT_GE(endpoint, endpoints.first);
      EXPECT_EQ(locations[endpoint - endpoints.first], to);
      remote.insert(endpoint);
    }
  }
  std::uint64_t most[1] = {std::max<std::uint64_t>(1, remote.size())};
  rt.all_reduce(std::span<std::uint64_t>(most), esker::Reduction::kMax);
  EXPECT_EQ(endpoints.locations.size(), most[0]);
}

void check(std::uint32_t pes, const EdgeSource& source, const std::string& partition, bool undirected,
           std::uint64_t chunk, std::uint32_t host_threads = 1) {
  const SerialGraph expected = load_serially(source, undirected);
  esker::Config config = config_of();
  config.cpu_threads = host_threads;
  Pes(pes, config).run([&](Runtime& rt) {
    const DistributedGraph graph =
        load(rt, source, make_partition(rt, partition, source, 7), undirected, chunk);
    expect_same(rt, graph, expected);
    expect_slots(rt, graph, expected);
    expect_mirrors(rt, graph, expected);
    expect_remote_endpoints(rt, graph);
  });
}

TEST(DistributedGraph, HoldsTheSerialGraphsEdgesOnAnyNumberOfPes) {
  for (const std::uint32_t pes : {1u, 2u, 3u, 4u}) {
    for (const bool undirected : {false, true})
      check(pes, awkward(61, 700, pes), "block", undirected, 1 << 10);
  }
}

TEST(DistributedGraph, IsTheSameInChunksOfAnySize) {
  for (const std::uint64_t chunk : {1u, 7u, 100u}) check(2, awkward(40, 300, 5), "block", true, chunk);
}

TEST(DistributedGraph, IsTheSameByAnyNumberOfReaders) {
  for (const std::uint32_t threads : {2u, 5u}) {
    check(1, awkward(61, 700, threads), "block", true, 1 << 10, threads);
    check(3, awkward(40, 20000, threads), "hash", false, 1000, threads);  // several blocks a reader
  }
}

TEST(DistributedGraph, ReadersThatDifferBetweenPesLeaveNoEdgeOut) {
  const EdgeSource source = awkward(61, 700, 3);
  const SerialGraph expected = load_serially(source, true);
  Pes pes(3, config_of());
  for (std::uint32_t pe = 0; pe < 3; ++pe) pes.config(pe).cpu_threads = 2 + pe;
  pes.run([&](Runtime& rt) {
    expect_same(rt, load(rt, source, make_partition(rt, "block", source, 7), true, 64), expected);
  });
}

TEST(DistributedGraph, ThrowsWhatASourceThrowsWhateverOtherReadersDo) {
  for (const std::uint32_t threads : {1u, 3u}) {
    esker::Config config = config_of();
    config.cpu_threads = threads;
    // One part ends in an error at its first edge; the others have more than waits to be taken.
    const EdgeSource source(8, [](inputs::Part part, const inputs::EdgeVisitor& visit) {
      if (part.index + 1 == part.count) throw std::runtime_error("line 7: no edge");
      for (std::uint64_t i = 0; i < 1'000'000; ++i) visit({i % 8, (i + 1) % 8, 1});
    });
    for (const auto& failed : Pes(1, config).run_and_catch(
             [&](Runtime& rt) { load(rt, source, make_partition(rt, "block", source, 7), true, 1 << 10); })) {
      ASSERT_TRUE(failed);
      EXPECT_EQ(failed->message, "line 7: no edge");
    }
  }
}

TEST(ForEachBlock, ThrowsWhatTheTakerThrowsWhileReadersWait) {
  for (const std::uint32_t threads : {1u, 4u}) {
    const auto load_until_refused = [&] {
      for_each_block<std::uint64_t>(
          awkward(10, 2'000'000, 1), {0, 1}, threads,
          [](const inputs::Edge& edge) { return std::optional<std::uint64_t>(edge.from); },
          [](std::span<const std::uint64_t> /*block*/) { throw std::runtime_error("enough"); });
    };
    EXPECT_THROW(load_until_refused(), std::runtime_error);
  }
}

TEST(ForEachBlock, ShowsEachEdgeOnceAndLeavesOutWhatIsNotConverted) {
  for (const std::uint32_t threads : {1u, 4u}) {
    std::map<double, int> seen;
    const EdgeSource source(2, [](inputs::Part part, const inputs::EdgeVisitor& visit) {
      const inputs::Range mine = range_of(30'000, part);
      for (std::uint64_t i = mine.begin; i < mine.end; ++i) visit({0, 1, static_cast<double>(i)});
    });
    for_each_block<double>(
        source, {1, 3}, threads,
        [](const inputs::Edge& edge) {
          return edge.weight < 15'000 ? std::optional<double>(edge.weight) : std::nullopt;
        },
        [&](std::span<const double> block) {
          for (const double weight : block) ++seen[weight];
        });
    EXPECT_EQ(seen.size(), 5000u);  // of the second third, 10 000 to 19 999
    for (const auto& [weight, times] : seen) EXPECT_EQ(times, 1) << weight;
  }
}

TEST(RunTeam, CallsEachMemberOnceAndThrowsTheFirstsError) {
  std::vector<int> calls(5);
  harness::run_team(5, [&](std::uint32_t t) { ++calls[t]; });
  EXPECT_EQ(calls, std::vector<int>(5, 1));
  try {
    harness::run_team(4, [](std::uint32_t t) {
      if (t >= 2) throw std::runtime_error(std::to_string(t));
    });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "2");
  }
}

TEST(DistributedGraph, FollowsThePartition) {
  check(3, awkward(97, 600, 2), "hash", true, 1 << 10);
  if (ESKER_TEST_METIS) check(3, awkward(97, 600, 2), "metis", true, 1 << 10);
}

TEST(DistributedGraph, MayHaveNoEdgesOrFewerVerticesThanPes) {
  check(2, awkward(10, 0, 1), "block", true, 16);
  check(4, awkward(2, 9, 1), "block", true, 16);
  check(3, awkward(1, 5, 1), "block", false, 16);
}

TEST(EdgeSource, OfAFileIsTheFilesOwn) {
  Options options;
  options.graph = ESKER_TEST_GRAPHS "/karate.mtx";
  Pes(3, config_of()).run([&](Runtime& rt) {
    const EdgeSource source(rt, options, 1, inputs::Weights::kUsed);
    EXPECT_EQ(source.vertices(), 34u);
    const DistributedGraph graph = load(rt, source, make_partition(rt, "block", source, 1), true, 64);
    EXPECT_EQ(graph.all_edges, 156u);
    expect_same(rt, graph, load_serially(source, true));
  });
}

TEST(EdgeSource, OfAGeneratorHasAboutAsManyVerticesAsTheScaleSays) {
  Pes(1, config_of()).run([&](Runtime& rt) {
    const auto vertices = [&](const std::string& name, std::uint64_t scale) {
      Options options;
      options.graph = name;
      options.scale = scale;
      return EdgeSource(rt, options, 1, inputs::Weights::kUsed).vertices();
    };
    EXPECT_EQ(vertices("kronecker", 6), 64u);
    EXPECT_EQ(vertices("uniform", 6), 64u);
    EXPECT_EQ(vertices("bubbles", 9), 880u);
    EXPECT_EQ(vertices("cage", 9), 340u);
    EXPECT_EQ(vertices("cage", 1), 5u);
  });
}

TEST(EdgeSource, RefusesAFileThatIsNotThere) {
  Options options;
  options.graph = "no-such-file.mtx";
  for (const auto& failed : Pes(2, config_of()).run_and_catch([&](Runtime& rt) {
         EdgeSource(rt, options, 1, inputs::Weights::kUsed);
       })) {
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->kind, esker::Error::Kind::kConfiguration) << failed->message;
  }
}

// So many edges that threads do share the sort, and so many threads that they take its way for many. Not
// under a sanitizer, which takes half a minute for them.
TEST(SerialGraph, IsTheSameHoweverManyThreadsSort) {
#if defined(ESKER_TEST_SANITIZED)
  constexpr std::uint64_t kEdges = 20'000;
#else
  constexpr std::uint64_t kEdges = 600'000;
#endif
  const EdgeSource source = awkward(5000, kEdges, 11);
  const SerialGraph one = load_serially(source, true);
  const SerialGraph one_reversed = reversed(one);
  for (const std::uint32_t threads : {2u, 8u}) {
    const SerialGraph many = load_serially(source, true, threads);
    EXPECT_EQ(many.first, one.first);
    EXPECT_EQ(many.to, one.to);
    EXPECT_EQ(many.weight, one.weight);
    const SerialGraph many_reversed = reversed(one, threads);
    EXPECT_EQ(many_reversed.to, one_reversed.to);
    EXPECT_EQ(many_reversed.weight, one_reversed.weight);
  }
}

}  // namespace
}  // namespace graph::testing
