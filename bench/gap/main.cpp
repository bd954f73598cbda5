// esker-bench-gap: PageRank, shortest paths and breadth-first search by threads on one shared graph, in the
// way of the GAP benchmark suite. What esker-pagerank, esker-sssp and esker-bfs are compared with
// (scripts/compare_gap.py).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <esker/config.hpp>
#include <esker/esker.hpp>

#include "../../apps/graph/serial_graph.hpp"
#include "../../apps/graph/sources.hpp"
#include "../harness/report.hpp"
#include "bfs.hpp"
#include "pagerank.hpp"
#include "sssp.hpp"

namespace esker::bench {
namespace {

struct Options {
  graph::SourceOptions source;
  std::string kernel = "pagerank";
  std::uint64_t seed = 1;
  std::uint64_t repeats = 3;
  std::uint64_t threads = 2;
  std::uint64_t delta = 32;
  double tolerance = 1e-4;
  std::uint64_t iterations = 100;
  std::string json;
};

using Clock = std::chrono::steady_clock;

/// Runs one kernel `repeats` times; each is checked. Adds to the report.
template <class Prepare, class Run, class Check>
bool repeat(std::uint64_t repeats, nlohmann::json& report, const Prepare& prepare, const Run& run,
            const Check& check) {
  bool verified = true;
  std::vector<double> seconds;
  for (std::uint64_t i = 0; i <= repeats; ++i) {
    prepare();
    const auto began = Clock::now();
    run();
    const std::chrono::duration<double> took = Clock::now() - began;
    if (i > 0) seconds.push_back(took.count());  // the first warms up
    verified = check() && verified;
  }
  report["all_seconds"] = seconds;
  std::sort(seconds.begin(), seconds.end());
  report["seconds"] = seconds[seconds.size() / 2];
  report["verified"] = verified;
  return verified;
}

/// Where each search starts: vertices with edges, as esker-bfs draws them.
class Drawn {
 public:
  explicit Drawn(const SharedGraph& graph)
      : graph_{graph}, drawn_{static_cast<std::uint64_t>(graph.vertices())} {}
  Vertex now() const { return now_; }
  /// The run that warms up has the first one's.
  void next_run() {
    if (runs_++ == 1) return;
    do {
      now_ = static_cast<Vertex>(drawn_.next());
    } while (graph_.degree(now_) == 0);
  }

 private:
  const SharedGraph& graph_;
  graph::Sources drawn_;
  Vertex now_ = 0;
  std::uint64_t runs_ = 0;
};

SharedGraph read_graph(const Config& config, const Options& o, bool weighted) {
  Runtime rt(config);  // for the readers of graphs; it ends before anything is timed
  const graph::EdgeSource source(rt, o.source, o.seed,
                                 weighted ? inputs::Weights::kUsed : inputs::Weights::kIgnored);
  return share(graph::load_serially(source, true, rt.host_threads()), weighted);
}

int run(int argc, char** argv) {
  Options o;
  CommandLine line("esker-bench-gap",
                   "Ranks vertices, finds shortest paths or searches breadth first, by threads that share a "
                   "graph.");
  o.source.add_to(line);
  line.add("kernel", &o.kernel, "what is computed", {"pagerank", "sssp", "bfs"})
      .add("seed", &o.seed, "of a generated graph")
      .add("repeats", &o.repeats, "timed runs, after one that is not; the median counts")
      .add("threads", &o.threads, "that share the work")
      .add("delta", &o.delta, "width of a bin of distances")
      .add("tolerance", &o.tolerance, "PageRank ends when all ranks together change by less")
      .add("iterations", &o.iterations, "of PageRank, at most")
      .add("json", &o.json, "write one JSON object to this file; - is standard output");
  const Config config = line.parse(argc, argv);
  o.source.complete("small");
  if (o.threads == 0 || o.delta == 0 || o.repeats == 0)
    throw UsageError("--threads, --delta and --repeats are above 0");
  if (o.threads > 1024 || o.delta > 1u << 30) throw UsageError("--threads is at most 1024, --delta 2^30");
  const bool weighted = o.kernel == "sssp";
  nlohmann::json report = provenance("gap");
  const SharedGraph graph = read_graph(config, o, weighted);
  const auto threads = static_cast<std::uint32_t>(o.threads);
  report.update({{"kernel", o.kernel},
                 {"graph", o.source.graph},
                 {"scale", o.source.scale},
                 {"vertices", graph.vertices()},
                 {"edges", graph.first.back()},
                 {"threads", threads}});
  bool verified = false;
  if (weighted) {
    SharedShortestPaths paths(graph, threads, static_cast<Weight>(o.delta));
    const Vertex source = graph.busiest();
    verified = repeat(
        o.repeats, report, [&] { paths.prepare(); }, [&] { report["rounds"] = paths.run(source); },
        [&] { return paths.count_wrong(source) == 0; });
    report.update({{"delta", o.delta}, {"source", source}});
  } else if (o.kernel == "bfs") {
    if (graph.first.back() == 0) throw UsageError("the graph has no edges: no vertex to start from");
    SharedSearch search(graph, threads);
    Drawn sources(graph);
    verified = repeat(
        o.repeats, report, [&] { sources.next_run(); }, [&] { report["steps"] = search.run(sources.now()); },
        [&] { return search.count_wrong(sources.now()) == 0; });
  } else {
    SharedPageRank ranks(graph, threads);
    verified = repeat(
        o.repeats, report, [&] { ranks.prepare(); },
        [&] { report["iterations"] = ranks.run(o.tolerance, o.iterations); },
        [&] {
          report["residual"] = ranks.residual();
          return report["residual"].get<double>() < o.tolerance;
        });
    report["tolerance"] = o.tolerance;
  }
  if (!o.json.empty()) write_json(report, o.json);
  if (o.json != "-") {
    fmt::print("{} {}: {:.4f} s, {}\n", o.kernel, o.source.graph, report["seconds"].get<double>(),
               verified ? "verified" : "WRONG");
  }
  return verified ? 0 : 1;
}

}  // namespace
}  // namespace esker::bench

int main(int argc, char** argv) {
  try {
    return esker::bench::run(argc, argv);
  } catch (const esker::UsageError& error) {
    std::fprintf(stderr, "esker-bench-gap: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "esker-bench-gap: %s\n", error.what());
    return 1;
  }
}
