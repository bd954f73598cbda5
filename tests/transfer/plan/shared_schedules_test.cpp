// Storages that cross more than once: the search beside brute force, the heuristic with its gap.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <utility>
#include <vector>

#include <esker/transfer/plan/arena.hpp>
#include <esker/transfer/plan/operand_graph.hpp>
#include <esker/transfer/plan/schedule.hpp>
#include <esker/transfer/plan/shared.hpp>
#include <esker/transfer/plan/stabbing.hpp>
#include <esker/transfer/plan/transfers.hpp>

namespace esker::transfer {
namespace {

/// So many storages, kernels on the host and `devices` devices; half of what kernels change, they change in
/// place.
OperandGraph shared_graph(std::mt19937_64& random, std::uint32_t storages, std::uint32_t kernels,
                          std::uint32_t devices) {
  OperandGraph graph;
  std::vector<std::uint32_t> newest;
  for (std::uint32_t i = 0; i < storages; ++i) newest.push_back(graph.add_operand({"", 8, true, false}));
  for (std::uint32_t k = 0; k < kernels; ++k) {
    std::vector<std::uint32_t> reads, writes, changed;
    for (std::uint32_t i = 0; i < storages; ++i) {
      const std::uint64_t use = random() % 5;
      if (use < 2) reads.push_back(newest[i]);
      if (use != 0) continue;
      writes.push_back(graph.add_version(newest[i]));
      newest[i] = writes.back();
    }
    graph.add_kernel("", static_cast<std::uint32_t>(random() % (devices + 1)), reads, writes);
  }
  graph.want_results();
  return graph;
}

/// Whether some order of storages and some times need no more than `limit` startups: storages are placed one
/// after the other, their transfers at each of their times.
class BruteForce {
 public:
  BruteForce(const OperandGraph& graph, const std::vector<Transfer>& transfers)
      : transfers_{transfers}, of_(graph.operands()) {
    for (std::uint32_t i = 0; i < transfers.size(); ++i)
      of_[graph.storage(transfers[i].operand)].push_back(i);
    of_.erase(std::remove_if(of_.begin(), of_.end(), [](const auto& all) { return all.empty(); }), of_.end());
    times_.resize(transfers.size());
  }
  bool reaches(std::uint32_t limit) {
    limit_ = limit;
    return place(0, of_.size(), 0);
  }
  std::size_t storages() const { return of_.size(); }

 private:
  bool place(std::uint64_t placed, std::size_t last, std::uint32_t cost) {
    if (placed == (std::uint64_t{1} << of_.size()) - 1) return true;
    for (std::size_t i = 0; i < of_.size(); ++i) {
      if ((placed >> i & 1) == 0 && choose(placed | std::uint64_t{1} << i, last, i, 0, cost)) return true;
    }
    return false;
  }
  bool choose(std::uint64_t placed, std::size_t last, std::size_t at, std::size_t next, std::uint32_t cost) {
    if (next == of_[at].size()) return place(placed, at, cost);
    const Transfer& transfer = transfers_[of_[at][next]];
    for (std::uint32_t time = transfer.earliest; time <= transfer.latest; ++time) {
      times_[of_[at][next]] = time;
      bool joins = false;
      if (last != of_.size()) {
        for (const std::uint32_t other : of_[last]) {
          joins = joins || (transfers_[other].from == transfer.from && transfers_[other].to == transfer.to &&
                            times_[other] == time);
        }
      }
      const std::uint32_t sum = cost + (joins ? 0 : 1);
      if (sum <= limit_ && choose(placed, last, at, next + 1, sum)) return true;
    }
    return false;
  }

  const std::vector<Transfer>& transfers_;
  std::vector<std::vector<std::uint32_t>> of_;
  std::vector<std::uint32_t> times_;
  std::uint32_t limit_ = 0;
};

/// Returns whether the graph was hard: more startups than the disjoint transfers prove.
bool expect_exact(const OperandGraph& graph) {
  const std::vector<Transfer> transfers = transfers_of(graph);
  const Schedule schedule = schedule_shared(graph, transfers);
  check_schedule(graph, transfers, schedule);
  (void)lay_out(graph, schedule);
  const auto startups = static_cast<std::uint32_t>(schedule.startups.size());
  EXPECT_EQ(schedule.gap(), 0u);
  BruteForce brute_force(graph, transfers);
  EXPECT_TRUE(brute_force.reaches(startups)) << to_json(graph);
  if (startups > 0) {
    EXPECT_FALSE(brute_force.reaches(startups - 1)) << to_json(graph);
  }
  return startups > schedule.certificate.size();
}

#if defined(ESKER_TEST_SANITIZED)
constexpr int kGraphs = 200;
constexpr int kLargeGraphs = 1;  // of each size
#else
constexpr int kGraphs = 1000;
constexpr int kLargeGraphs = 5;
#endif

/// Returns how many of the graphs were hard.
int expect_exact_on_small_graphs(std::uint64_t seed, int graphs) {
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  int hard = 0;
  for (int i = 0; i < graphs; ++i) {
    const auto storages = static_cast<std::uint32_t>(3 + random() % 4);
    hard += expect_exact(shared_graph(random, storages, 3 + static_cast<std::uint32_t>(random() % 5),
                                      1 + static_cast<std::uint32_t>(random() % 3)))
                ? 1
                : 0;
    if (::testing::Test::HasFailure()) break;
  }
  return hard;
}

TEST(SharedSchedules, EqualBruteForceOnSmallGraphs) {
  expect_exact_on_small_graphs(std::random_device{}(), kGraphs);
}

TEST(SharedSchedules, EqualBruteForceOnGraphsOfWhichSomeAreHard) {
  EXPECT_GE(expect_exact_on_small_graphs(1, 200), 3);
}

TEST(SharedSchedules, EqualBruteForceUpToTwelveOperands) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  int hard = 0;
  for (std::uint32_t storages = 7; storages <= 12; ++storages) {
    for (int found = 0; found < kLargeGraphs;) {
      const OperandGraph graph = shared_graph(random, storages, 4, 1);
      const std::vector<Transfer> transfers = transfers_of(graph);
      if (BruteForce(graph, transfers).storages() < storages - 1 || crosses_once(graph, transfers)) continue;
      ++found;
      hard += expect_exact(graph) ? 1 : 0;
      if (HasFailure()) return;
    }
  }
  std::printf("%d of %d graphs need more startups than disjoint transfers prove\n", hard, 6 * kLargeGraphs);
}

/// Returns how many startups more than the search the heuristic has, and how many the search has.
std::pair<std::uint32_t, std::uint32_t> expect_bounds_of_the_heuristic(std::uint64_t seed) {
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  std::uint32_t gaps = 0, startups = 0;
  for (int i = 0; i < 40; ++i) {
    const OperandGraph graph = shared_graph(random, 8, 4, 2);
    const std::vector<Transfer> transfers = transfers_of(graph);
    const Schedule searched = schedule_shared(graph, transfers);
    const Schedule heuristic = schedule_shared(graph, transfers, 0);
    check_schedule(graph, transfers, heuristic);
    EXPECT_LE(heuristic.lower_bound, searched.startups.size());
    EXPECT_GE(heuristic.startups.size(), searched.startups.size());
    gaps += static_cast<std::uint32_t>(heuristic.startups.size() - searched.startups.size());
    startups += static_cast<std::uint32_t>(searched.startups.size());
  }
  return {gaps, startups};
}

TEST(SharedSchedules, TheHeuristicHasABoundAndIsNeverBelowTheSearch) {
  expect_bounds_of_the_heuristic(std::random_device{}());
  const auto [gaps, startups] = expect_bounds_of_the_heuristic(1);
  EXPECT_LE(gaps, startups / 5);
}

/// Operand i goes to devices i and i + 1, in a ring: every two neighbours would share a startup, and a row
/// has no place for the last pair.
OperandGraph ring_graph(std::uint32_t storages) {
  OperandGraph graph;
  for (std::uint32_t i = 0; i < storages; ++i) graph.add_operand({"", 8, true, false});
  for (std::uint32_t i = 0; i < storages; ++i)
    graph.add_kernel("", i + 1, std::vector<std::uint32_t>{i, (i + 1) % storages}, {});
  return graph;
}

TEST(SharedSchedules, ARingNeedsOneMoreStartupThanDisjointTransfersProve) {
  EXPECT_TRUE(expect_exact(ring_graph(5)));
  // 12 devices need a startup each, and a row has 11 pairs of neighbours.
  const OperandGraph graph = ring_graph(12);
  const Schedule schedule = schedule_shared(graph, transfers_of(graph));
  EXPECT_EQ(schedule.startups.size(), 13u);
  EXPECT_EQ(schedule.lower_bound, 13u);
}

TEST(SharedSchedules, ALargerRingHasAGapOfOne) {
  const OperandGraph graph = ring_graph(40);
  const Schedule schedule = schedule_shared(graph, transfers_of(graph));
  check_schedule(graph, transfers_of(graph), schedule);
  EXPECT_EQ(schedule.startups.size(), 41u);
  EXPECT_EQ(schedule.gap(), 1u);
}

TEST(SharedSchedules, LargeGraphsHaveAScheduleAndABound) {
  std::mt19937_64 random(7);
  const OperandGraph graph = shared_graph(random, 30, 6, 2);
  const std::vector<Transfer> transfers = transfers_of(graph);
  const Schedule schedule = schedule_shared(graph, transfers);
  check_schedule(graph, transfers, schedule);
  EXPECT_GE(schedule.startups.size(), schedule.lower_bound);
  EXPECT_GT(schedule.saved(), 0u);
}

TEST(SharedSchedules, WhatCrossesOnceNeedsAsManyAsTheExactSchedule) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 200; ++i) {
    const OperandGraph graph = shared_graph(random, 6, 2, 1);
    const std::vector<Transfer> transfers = transfers_of(graph);
    if (!crosses_once(graph, transfers)) continue;
    EXPECT_EQ(schedule_shared(graph, transfers).startups.size(),
              schedule_exact(graph, transfers).startups.size());
  }
}

TEST(SharedSchedules, OperandsAtAddressesShareAStartupOnlyWithTheirNeighbours) {
  OperandGraph graph;
  const auto at = [&](std::uint64_t address) { return graph.add_operand({"", 64, true, false, address}); };
  // a and b are neighbours, c is not; d and e are where the plan likes.
  const std::uint32_t b = at(4096 + 64), a = at(4096), c = at(8192), d = at(0), e = at(0);
  const std::uint32_t result = graph.add_operand({"", 64, false, true, 0});
  graph.add_kernel("k", 1, std::vector{a, b, c, d, e}, std::vector{result});
  const std::vector<Transfer> transfers = transfers_of(graph);
  EXPECT_FALSE(crosses_once(graph, transfers));
  const Schedule schedule = schedule_shared(graph, transfers);
  check_schedule(graph, transfers, schedule);
  EXPECT_EQ(schedule.startups.size(), 4u);  // ab, c, de, and the result
  const Layout layout = lay_out(graph, schedule);
  EXPECT_EQ(layout.offsets[1][b], layout.offsets[1][a] + 64);
  EXPECT_EQ(layout.offsets[0][a], Layout::kNowhere);
}

}  // namespace
}  // namespace esker::transfer
