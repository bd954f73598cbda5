// triangles, of the bale suite: counts the triangles of an undirected graph.
//
// Invariant. Vertices are in an order. Row i of the matrix L has the neighbours of i before i. A triangle has
// a last vertex i and a middle one j, which is in row i; the first is in both of their rows: so the sum over
// the entries (i, j) of L of what rows i and j have in common counts each triangle once (L & L * L). With
// --by push the owner of row i sends each k before j in its row to the owner of row j, which looks for it;
// with --by pull it brings row j.
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <esker/esker.hpp>

#include "../graph/distributed_graph.hpp"
#include "../graph/edge_traversal.hpp"
#include "../graph/partition.hpp"
#include "../graph/serial_graph.hpp"
#include "../harness/application.hpp"
#include "../harness/fill.hpp"
#include "pull.hpp"
#include "push.hpp"
#include "rows.hpp"

namespace {

using triangles::Key;

struct Options : harness::Options {
  graph::Options graph;
  std::string by = "push";
  std::string order = "degree";
};

/// The computation on one PE.
class Counting {
 public:
  Counting(esker::Runtime& rt, const triangles::Rows& rows, bool pulls)
      : rt_{rt},
        rows_{rows},
        counts_{rt.heap().allocate<std::uint64_t>(rows.first.size())},
        entries_{rt, rows.first, rows.my_rows, rows.my_entries} {
    if (pulls) {
      pull_.emplace(rt, rows);
    } else {
      look_for_ = rt.register_handler<std::uint64_t, Key>("triangles", triangles::LookFor{rows, counts_});
    }
  }

  void prepare() { harness::clear(rt_, counts_); }

  void run(styles::Superstep& superstep) {
    if (!pull_) {
      superstep.run(entries_.lanes(), triangles::PushPairs{rows_, counts_, entries_, look_for_}, "triangles");
      return;
    }
    rt_.launch(entries_.lanes(), triangles::CountOwn{rows_, counts_, entries_}, "triangles-own");
    pull_->run(counts_);
    rt_.barrier_all();
  }

  /// Collective.
  std::uint64_t triangles() const {
    const auto counts = rt_.heap().read(counts_);
    std::array<std::uint64_t, 1> all{std::accumulate(counts.begin(), counts.end(), std::uint64_t{0})};
    rt_.all_reduce(std::span<std::uint64_t>(all), esker::Reduction::kSum);
    return all[0];
  }

 private:
  esker::Runtime& rt_;
  const triangles::Rows& rows_;
  esker::SymmetricArray<std::uint64_t> counts_;  // at the PEs that have found them; the sum is what counts
  graph::EdgeTraversal entries_;
  esker::Handler<std::uint64_t, Key> look_for_;  // --by push
  std::optional<triangles::Pull> pull_;          // --by pull
};

/// By marks: of vertex v's later neighbours, those that a later neighbour u of v has as later ones too. Later
/// is who has fewer edges.
std::uint64_t count_serially(const graph::SerialGraph& graph) {
  const auto is_later = [&](std::uint64_t u, std::uint64_t v) {
    return std::pair(graph.degree(u), u) > std::pair(graph.degree(v), v);
  };
  std::vector<std::vector<std::uint32_t>> later(graph.vertices());
  for (std::uint64_t v = 0; v < graph.vertices(); ++v) {
    for (const std::uint32_t u : graph.neighbours(v)) {
      if (is_later(u, v)) later[v].push_back(u);
    }
  }
  std::vector<bool> is_marked(graph.vertices());
  std::uint64_t count = 0;
  for (const auto& mine : later) {
    for (const std::uint32_t u : mine) is_marked[u] = true;
    for (const std::uint32_t u : mine) {
      for (const std::uint32_t w : later[u]) count += is_marked[w] ? 1 : 0;
    }
    for (const std::uint32_t u : mine) is_marked[u] = false;
  }
  return count;
}

int run(int argc, char** argv) {
  Options o;
  esker::CommandLine line(
      "esker-triangles",
      "Counts the triangles of a graph distributed over the PEs (bale's triangles), every edge "
      "in both directions.");
  o.add_to(line);
  o.graph.add_to(line, false);
  line.add("by", &o.by, "pairs of a row are pushed to another row's owner, or that row is pulled",
           {"push", "pull"})
      .add("order", &o.order,
           "which neighbours a row has: those with more edges, or with smaller ids, as bale",
           {"degree", "id"});
  esker::Config config = o.parse(line, argc, argv);
  o.graph.complete(o.size);
  if (o.by == "pull" && o.chosen_style() != styles::Style::kGravel)
    harness::usage("--by pull has no --style but gravel");
  styles::configure(config, o.chosen_style());

  esker::Runtime rt(config);
  o.open(rt);
  styles::Superstep superstep(rt, o.chosen_style());
  const graph::EdgeSource source(rt, o.graph, o.seed, inputs::Weights::kIgnored);
  const auto graph =
      graph::load(rt, source, graph::make_partition(rt, o.graph.partition, source, o.seed), true);
  const triangles::Rows rows = triangles::RowMaker(rt, graph, o.order == "degree").make();
  Counting counting(rt, rows, o.by == "pull");
  nlohmann::json more = graph::facts(o.graph, graph);
  std::optional<std::uint64_t> expected;
  const auto measured = harness::measure(
      rt, superstep, o, [&] { counting.prepare(); }, [&] { counting.run(superstep); },
      [&] {
        if (!expected) {
          const graph::SerialGraph whole = graph::load_serially(source, true, rt.host_threads());
          const harness::Stopwatch stopwatch;
          expected = count_serially(whole);
          more["serial_seconds"] = stopwatch.seconds();
        }
        const std::uint64_t found = counting.triangles();
        const auto stars = o.graph.star_product();
        const bool is_known = !stars || found == stars->triangles();
        return std::uint64_t{found == *expected && is_known ? 0u : 1u};
      });
  more["by"] = o.by;
  more["order"] = o.order;
  more["triangles"] = counting.triangles();
  more["longest_row"] = rows.longest;
  return harness::finish(rt, o, "triangles", measured, static_cast<double>(rows.all_entries), "edges", more);
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-triangles", argc, argv, run); }
