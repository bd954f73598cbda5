// Startups that plans save, by solver, and how long planning takes (Kessler, Table 4).
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "../harness/measure.hpp"
#include "bench.hpp"

namespace esker::bench {

namespace {

using namespace transfer;

struct Row {
  std::string name;
  std::vector<OperandGraph> graphs;  // several where it is random
  const char* papers_greedy;         // as printed: 4 attempts (400 attempts where these save more)
  const char* papers_tight;
  double papers_ms;
};

constexpr std::uint64_t kBytes = 16384;
constexpr std::uint32_t kSeeds = 101;

Row random_row(const TransferBench& bench, const RandomGraph& shape, const char* greedy, const char* tight,
               double milliseconds) {
  Row row{fmt::format("random N {} entry {} in {}..{} out {}..{}", shape.kernels, shape.on_entry,
                      shape.least_reads, shape.most_reads, shape.least_writes, shape.most_writes),
          {},
          greedy,
          tight,
          milliseconds};
  for (std::uint64_t i = 0; i < kSeeds; ++i)
    row.graphs.push_back(random_graph(shape, bench.seed + i, kBytes));
  return row;
}

std::vector<Row> rows_of(const TransferBench& bench) {
  std::vector<Row> rows = {{"Figure 2", {figure2_graph(kBytes)}, "7", "7", 0.1}};
  rows.push_back(random_row(bench, {8, 12, 2, 3, 1, 1}, "7 (9)", "7 (8)", 0.2));
  rows.push_back(random_row(bench, {10, 5, 2, 4, 1, 2}, "11", "11", 0.2));
  rows.push_back(random_row(bench, {12, 16, 1, 4, 1, 2}, "14", "14", 0.3));
  rows.push_back(random_row(bench, {16, 16, 2, 3, 1, 2}, "19", "17", 0.3));
  rows.push_back(random_row(bench, {18, 8, 1, 2, 1, 2}, "12", "12", 0.2));
  rows.push_back(random_row(bench, {18, 8, 2, 2, 1, 2}, "16", "15", 0.4));
  rows.push_back(random_row(bench, {20, 8, 1, 1, 1, 1}, "11", "11", 0.2));
  rows.push_back(random_row(bench, {20, 8, 1, 3, 1, 2}, "18", "17", 0.2));
  rows.push_back(random_row(bench, {24, 10, 2, 3, 2, 2}, "28", "26", 0.6));
  rows.push_back(random_row(bench, {48, 10, 2, 2, 1, 2}, "41 (42)", "38 (41)", 0.9));
  rows.push_back(random_row(bench, {60, 10, 1, 2, 1, 2}, "40", "37", 2.0));
  rows.push_back(random_row(bench, {98, 12, 2, 2, 1, 2}, "75", "70", 5.7));
  rows.push_back({"chain of 20", {chain_graph(20, 1, 1, kBytes)}, "0", "0", 0.1});
  const auto random_tree = [&](std::uint32_t levels, bool outbound) {
    std::vector<OperandGraph> graphs;
    for (std::uint64_t i = 0; i < kSeeds; ++i)
      graphs.push_back(tree_graph(levels, outbound, 0.5, bench.seed + i, kBytes));
    return graphs;
  };
  rows.push_back(
      {"out-bound tree of 15, all on the device", {tree_graph(4, true, 1, 1, kBytes)}, "15", "15", 0.2});
  rows.push_back({"out-bound tree of 15, half", random_tree(4, true), "14", "14", 0.2});
  rows.push_back(
      {"in-bound tree of 15, all on the device", {tree_graph(4, false, 1, 1, kBytes)}, "15", "8", 0.2});
  rows.push_back({"in-bound tree of 15, half", random_tree(4, false), "14", "11", 0.2});
  rows.push_back(
      {"in-bound tree of 31, all on the device", {tree_graph(5, false, 1, 1, kBytes)}, "31", "16", 0.5});
  rows.push_back({"in-bound tree of 31, half", random_tree(5, false), "27", "17", 0.5});
  rows.push_back({"Horner's rule", {horner_graph(10, kBytes)}, "11", "11", 0.3});
  rows.push_back({"Cholesky 4 x 4", {cholesky_graph(4, false, kBytes)}, "14", "14", 0.2});
  rows.push_back({"Cholesky 4 x 4, SYRK on the host", {cholesky_graph(4, true, kBytes)}, "9", "8", 0.2});
  rows.push_back({"matrix product 2 x 2", {matmul_graph(kBytes)}, "11", "11", 0.1});
  rows.push_back({"conjugate gradients", {cg_graph(kBytes)}, "2", "2", 0.1});
  return rows;
}

struct Saved {
  std::uint32_t median, least, most;
};
Saved saved_by(const Row& row, const SolveOptions& options) {
  std::vector<std::uint32_t> saved;
  for (const OperandGraph& graph : row.graphs) {
    const std::vector<Transfer> transfers = transfers_of(graph);
    const Schedule schedule = make_schedule(graph, transfers, options);
    check_schedule(graph, transfers, schedule);
    saved.push_back(schedule.saved());
  }
  std::sort(saved.begin(), saved.end());
  return {saved[saved.size() / 2], saved.front(), saved.back()};
}

/// Median of the graphs and of some repeats.
double plan_microseconds(const std::vector<OperandGraph>& graphs, const SolveOptions& options,
                         std::uint32_t repeats) {
  std::vector<double> times;
  std::size_t startups = 0;
  for (const OperandGraph& graph : graphs) {
    for (std::uint32_t i = 0; i < repeats; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      startups += make_schedule(graph, transfers_of(graph), options).startups.size();
      times.push_back(
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    }
  }
  return startups == ~std::size_t{0} ? 0 : summarise(std::move(times)).median;
}

}  // namespace

nlohmann::json take_savings(const TransferBench& bench) {
  struct Side {
    const char* name;
    SolveOptions options;
  };
  const Side sides[] = {{"exact", {Solver::kExact}},
                        {"greedy, 4", {Solver::kGreedy, 4, bench.seed}},
                        {"greedy, 400", {Solver::kGreedy, 400, bench.seed}},
                        {"tight, 4", {Solver::kTight, 4, bench.seed}},
                        {"tight, 400", {Solver::kTight, 400, bench.seed}}};
  fmt::print("saved startups; random graphs: median of {} (least to most); the paper's in brackets\n",
             kSeeds);
  nlohmann::json results = nlohmann::json::array();
  for (const Row& row : rows_of(bench)) {
    nlohmann::json result = {
        {"graph", row.name},
        {"paper", {{"greedy", row.papers_greedy}, {"tight", row.papers_tight}, {"ms", row.papers_ms}}}};
    fmt::print("{:40}", row.name);
    for (const Side& side : sides) {
      const Saved saved = saved_by(row, side.options);
      const double time = plan_microseconds(row.graphs, side.options, row.graphs.size() == 1 ? 21 : 1);
      fmt::print("  {} {}", side.name, saved.median);
      if (row.graphs.size() > 1) fmt::print(" ({} to {})", saved.least, saved.most);
      fmt::print(" in {:.1f} us", time);
      result[side.name] = {
          {"median", saved.median}, {"min", saved.least}, {"max", saved.most}, {"median_us", time}};
    }
    fmt::print("  [greedy {}, tight {}, {:.1f} ms]\n", row.papers_greedy, row.papers_tight, row.papers_ms);
    results.push_back(result);
  }
  return results;
}

nlohmann::json take_planning(const TransferBench& bench) {
  nlohmann::json results = nlohmann::json::array();
  for (const std::uint32_t kernels : {25u, 50u, 100u, 200u, 400u}) {
    std::vector<OperandGraph> graphs;
    for (std::uint64_t i = 0; i < 21; ++i)
      graphs.push_back(random_graph({kernels, 12, 2, 3, 1, 2}, bench.seed + i, kBytes));
    const double exact = plan_microseconds(graphs, {Solver::kExact}, 51);
    const double greedy = plan_microseconds(graphs, {Solver::kGreedy, 4, bench.seed}, 3);
    fmt::print("{:4} kernels: exact {:.2f} us, greedy with 4 attempts {:.1f} us, {:.0f}x\n", kernels, exact,
               greedy, greedy / exact);
    results.push_back({{"kernels", kernels}, {"exact_us", exact}, {"greedy_us", greedy}});
  }
  return results;
}

}  // namespace esker::bench
