// Schedules of the paper's graphs: Figure 2 to the letter, Table 4's savings, versions in place.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <esker/error.hpp>
#include <esker/transfer/plan/affinity.hpp>
#include <esker/transfer/plan/paper_graphs.hpp>
#include <esker/transfer/plan/schedule.hpp>
#include <esker/transfer/plan/stabbing.hpp>
#include <esker/transfer/plan/transfers.hpp>

namespace esker::transfer {
namespace {

TEST(Figure2, TheDiagnosticIsThePapers) {
  const OperandGraph graph = figure2_graph(64);
  EXPECT_EQ(diagnostic(graph, transfers_of(graph)),
            "  0: ABC..........     0: ...DE........\n"
            "  1: ..C..........     1: ...D.........\n"
            "  2: ..C..F.......     2: ...D....I....\n"
            "  3: .............     3: ...D....IJK..\n"
            "  4: .............     4: ...D....IJKLM\n");
}

/// The operands of each startup, sorted: "before 0: ABC, ...".
std::string startups_of(const OperandGraph& graph, const Schedule& schedule) {
  std::string text;
  for (const Startup& startup : schedule.startups) {
    std::string names;
    for (std::uint32_t i = 0; i < startup.count; ++i)
      names += name_of(graph, schedule.order[startup.first + i]);
    std::sort(names.begin(), names.end());
    text += fmt::format("{} {}: {}\n", startup.is_upload() ? "before" : "after", startup.time, names);
  }
  return text;
}

TEST(Figure2, GreedySavesSevenAsInThePaper) {
  const OperandGraph graph = figure2_graph(64);
  const auto transfers = transfers_of(graph);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Schedule schedule = schedule_by_affinity(graph, transfers, {.attempts = 50, .seed = seed});
    check_schedule(graph, transfers, schedule);
    EXPECT_EQ(schedule.transfers, 11u);
    EXPECT_EQ(schedule.saved(), 7u) << "seed " << seed;
  }
}

TEST(Figure2, TightUploadsCWithFAsInThePaper) {
  const OperandGraph graph = figure2_graph(64);
  const auto transfers = transfers_of(graph);
  const Schedule schedule = schedule_by_affinity(graph, transfers, {.attempts = 50, .tight = true});
  check_schedule(graph, transfers, schedule);
  EXPECT_EQ(schedule.saved(), 7u);
  EXPECT_EQ(startups_of(graph, schedule), "before 0: AB\nafter 0: DE\nbefore 2: CF\nafter 4: IJKLM\n");
}

TEST(Figure2, TheExactScheduleIsTheTightOneWithItsCertificate) {
  const OperandGraph graph = figure2_graph(64);
  const auto transfers = transfers_of(graph);
  const Schedule schedule = schedule_exact(graph, transfers);
  EXPECT_EQ(startups_of(graph, schedule), "before 0: AB\nafter 0: DE\nbefore 2: CF\nafter 4: IJKLM\n");
  EXPECT_EQ(schedule.lower_bound, 4u);
  EXPECT_EQ(schedule.gap(), 0u);
  EXPECT_EQ(listing(graph, schedule),
            "before 0: upload B from location 0\n"
            "before 0: upload A from location 1\n"
            "Kernel0 (R(B), R(A), W(D), W(E))\n"
            "after 0: download E to location 4\n"
            "after 0: download D to location 5\n"
            "Kernel1 (R(E), R(B), W(F), W(G))\n"
            "before 2: upload C from location 2\n"
            "before 2: upload F from location 3\n"
            "Kernel2 (R(C), R(F), W(H), W(I))\n"
            "Kernel3 (R(F), R(H), W(J), W(K))\n"
            "Kernel4 (R(H), R(E), W(L), W(M))\n"
            "after 4: download I to location 6\n"
            "after 4: download J to location 7\n"
            "after 4: download K to location 8\n"
            "after 4: download L to location 9\n"
            "after 4: download M to location 10\n");
}

struct Row {
  const char* name;
  OperandGraph graph;
  std::uint32_t greedy;  // as printed, the better of the two strategies and of 4 and 400 attempts
};

TEST(Table4, TheExactScheduleSavesAtLeastWhatThePaperPrints) {
  const Row rows[] = {{"Figure 2", figure2_graph(64), 7},
                      {"linear chain", chain_graph(20, 1, 1, 64), 0},
                      {"out-bound tree", tree_graph(4, true, 1, 1, 64), 15},
                      {"in-bound tree of 15", tree_graph(4, false, 1, 1, 64), 15},
                      {"in-bound tree of 31", tree_graph(5, false, 1, 1, 64), 31},
                      {"Horner's rule", horner_graph(10, 64), 11},
                      {"Cholesky", cholesky_graph(4, false, 64), 14},
                      {"Cholesky, SYRK on the host", cholesky_graph(4, true, 64), 9},
                      {"matrix multiplication", matmul_graph(64), 11},
                      {"conjugate gradients", cg_graph(64), 2}};
  for (const Row& row : rows) {
    const auto transfers = transfers_of(row.graph);
    const Schedule exact = schedule_exact(row.graph, transfers);
    check_schedule(row.graph, transfers, exact);
    EXPECT_GE(exact.saved(), row.greedy) << row.name;
    EXPECT_EQ(exact.gap(), 0u) << row.name;
    for (const bool tight : {false, true}) {
      const Schedule heuristic = schedule_by_affinity(row.graph, transfers, {.tight = tight});
      check_schedule(row.graph, transfers, heuristic);
      EXPECT_LE(heuristic.saved(), exact.saved()) << row.name;
    }
  }
}

TEST(Table4, KernelsAndOperandsOnEntryAreThePapers) {
  const auto on_entry = [](const OperandGraph& graph) {
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < graph.operands(); ++i) count += graph.operand(i).on_entry ? 1 : 0;
    return count;
  };
  EXPECT_EQ(horner_graph(10, 64).kernels(), 20u);
  EXPECT_EQ(on_entry(horner_graph(10, 64)), 12u);
  EXPECT_EQ(cholesky_graph(4, false, 64).kernels(), 20u);
  EXPECT_EQ(matmul_graph(64).kernels(), 12u);
  EXPECT_EQ(on_entry(matmul_graph(64)), 8u);
  EXPECT_EQ(cg_graph(64).kernels(), 7u);
  EXPECT_EQ(tree_graph(5, false, 1, 1, 64).kernels(), 31u);
  EXPECT_EQ(on_entry(tree_graph(5, false, 1, 1, 64)), 32u);
}

TEST(Table4, RandomGraphsHaveTheirShape) {
  const RandomGraph shape{24, 10, 2, 3, 2, 2};
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const OperandGraph graph = random_graph(shape, seed, 64);
    EXPECT_EQ(graph.kernels(), 24u);
    EXPECT_EQ(graph.operands(), 10u + 48u);
    const auto transfers = transfers_of(graph);
    const Schedule exact = schedule_exact(graph, transfers);
    check_schedule(graph, transfers, exact);
    const Schedule few = schedule_by_affinity(graph, transfers, {.attempts = 4, .seed = seed});
    check_schedule(graph, transfers, few);
    EXPECT_LE(few.saved(), exact.saved()) << "seed " << seed;
  }
}

TEST(Schedules, UnfusedIsAStartupATransfer) {
  const OperandGraph graph = figure2_graph(64);
  const auto transfers = transfers_of(graph);
  const Schedule schedule = schedule_unfused(graph, transfers);
  check_schedule(graph, transfers, schedule);
  EXPECT_EQ(schedule.saved(), 0u);
  EXPECT_EQ(schedule.startups.size(), 11u);
  EXPECT_EQ(schedule.lower_bound, 4u);
}

}  // namespace
}  // namespace esker::transfer
