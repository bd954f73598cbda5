// Layouts: what is alive together never overlaps, and what one copy moves is one piece at both ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <esker/error.hpp>

#include <esker/transfer/plan/arena.hpp>
#include <esker/transfer/plan/bounded.hpp>
#include <esker/transfer/plan/bounded_branches.hpp>
#include <esker/transfer/plan/paper_graphs.hpp>
#include <esker/transfer/plan/shared.hpp>
#include <esker/transfer/plan/solve.hpp>
#include <esker/transfer/plan/stabbing.hpp>
#include <esker/transfer/plan/transfers.hpp>

namespace esker::transfer {
namespace {

void expect_apart(const OperandGraph& graph, const Schedule& schedule, const Layout& layout) {
  const auto lifetimes = lifetimes_of(graph, schedule);
  for (std::uint32_t place = 0; place < graph.places(); ++place) {
    for (std::uint32_t i = 0; i < graph.operands(); ++i) {
      const std::uint64_t at = layout.offsets[place][i];
      ASSERT_EQ(at != Layout::kNowhere, lifetimes[place][i].is_used());
      if (at == Layout::kNowhere) continue;
      ASSERT_EQ(at % 128, 0u);
      ASSERT_LE(at + graph.operand(i).bytes, layout.bytes[place]);
      for (std::uint32_t j = 0; j < i; ++j) {
        const std::uint64_t other = layout.offsets[place][j];
        if (other == Layout::kNowhere) continue;
        if (place != 0 && !lifetimes[place][i].overlaps(lifetimes[place][j])) continue;
        ASSERT_TRUE(at + graph.operand(i).bytes <= other || other + graph.operand(j).bytes <= at)
            << "operands " << i << " and " << j << " in place " << place;
      }
    }
    if (place != 0) {
      EXPECT_GE(layout.bytes[place], most_alive(graph, lifetimes[place]));
      EXPECT_LE(layout.bytes[place], layout.separate_bytes[place]);
    }
  }
  for (const Startup& startup : schedule.startups) {
    const auto distance = [&](std::uint32_t place, std::uint32_t i) {
      return layout.offsets[place][schedule.order[i]] - layout.offsets[place][schedule.order[startup.first]];
    };
    std::uint64_t bytes = 0;
    for (std::uint32_t i = startup.first; i < startup.first + startup.count; ++i) {
      ASSERT_EQ(distance(startup.from, i), distance(startup.to, i));
      bytes += (graph.operand(schedule.order[i]).bytes + 127) / 128 * 128;
    }
    ASSERT_LE(layout.bytes_of(graph, schedule, startup), bytes);
    ASSERT_GT(layout.bytes_of(graph, schedule, startup) + 128, bytes);
  }
}

void expect_right(const OperandGraph& graph, Solver solver) {
  const std::vector<Transfer> transfers = transfers_of(graph);
  const Schedule schedule = make_schedule(graph, transfers, {.solver = solver});
  expect_apart(graph, schedule, lay_out(graph, schedule));
}

TEST(Arena, NothingOverlapsWhatIsAliveWithIt) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  for (std::uint64_t i = 0; i < 60; ++i) {
    for (const Solver solver : {Solver::kExact, Solver::kGreedy, Solver::kTight, Solver::kUnfused}) {
      expect_right(random_graph({24, 10, 1, 3, 1, 2}, seed + i, 100 + i), solver);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Arena, StandsForThePapersPrograms) {
  for (const OperandGraph& graph : {figure2_graph(4096), cholesky_graph(4, false, 4000), cg_graph(512),
                                    tree_graph(4, false, 1, 1, 256), horner_graph(10, 1024)}) {
    for (const Solver solver : {Solver::kExact, Solver::kTight}) expect_right(graph, solver);
  }
}

#if defined(ESKER_TEST_SANITIZED)
constexpr int kGraphs = 20, kLargeGraphs = 1;
#else
constexpr int kGraphs = 200, kLargeGraphs = 100;
#endif

/// Returns how many schedules there were, of three for each graph.
int expect_bounded_schedules(std::uint64_t seed) {
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  int schedules = 0;
  for (std::uint64_t i = 0; i < kLargeGraphs; ++i) {
    const OperandGraph graph = random_graph({24, 10, 1, 3, 1, 2, 0.7}, seed + i, 1000);
    const Schedule free = make_schedule(graph, transfers_of(graph));
    const Layout most = lay_out(graph, free);
    for (const double share : {0.9, 0.7, 0.5}) {
      const auto limit = static_cast<std::uint64_t>(share * static_cast<double>(most.bytes.back()));
      BoundedSchedule bounded;
      try {
        bounded = schedule_bounded(graph, limit);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::kOutOfMemory);
        continue;
      }
      ++schedules;
      check_schedule(graph, bounded.transfers, bounded.schedule);
      EXPECT_LE(bounded.layout.bytes[1], limit);
      EXPECT_GE(bounded.schedule.startups.size(), free.lower_bound);
      expect_apart(graph, bounded.schedule, bounded.layout);
      if (::testing::Test::HasFailure()) return schedules;
    }
  }
  return schedules;
}

TEST(Arena, ABoundedScheduleFitsAndIsOneOfItsTransfers) {
  expect_bounded_schedules(std::random_device{}());
  EXPECT_GE(expect_bounded_schedules(1), kLargeGraphs);
}

constexpr std::uint32_t kNoSchedule = ~std::uint32_t{0};

/// The fewest startups with which operands fit in so many bytes, whatever their layout.
std::uint32_t bound_of(const OperandGraph& graph, std::uint64_t limit) {
  return detail::search_bounded(graph, limit, 128, kNoSchedule, 2000).bound;
}

TEST(Arena, WithoutALimitTheSearchFindsTheExactSchedule) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const OperandGraph graph = random_graph({5, 3, 1, 3, 1, 2}, seed, 1000);
    ASSERT_EQ(bound_of(graph, 1 << 20), schedule_exact(graph, transfers_of(graph)).startups.size())
        << "seed " << seed;
  }
}

/// Plays a program: before each kernel values leave the device and others come in one startup, after it
/// others go down in one. It tries every set each time, and knows nothing of which are good.
class EverySet {
 public:
  EverySet(const OperandGraph& graph, std::uint64_t limit)
      : graph_{graph}, limit_{limit}, sets_{std::uint32_t{1} << graph.operands()} {}

  std::uint32_t fewest() const {
    // By the sets of what is on the device and of what the host has.
    std::vector<std::uint32_t> costs(std::size_t{sets_} * sets_, kNoSchedule);
    costs[set_of([&](std::uint32_t i) { return graph_.operand(i).on_entry; })] = 0;
    for (std::uint32_t k = 0; k < graph_.kernels(); ++k) costs = after(k, costs);
    const std::uint32_t results = set_of([&](std::uint32_t i) { return graph_.operand(i).on_exit; });
    std::uint32_t least = kNoSchedule;
    for (std::uint32_t on_device = 0; on_device < sets_; ++on_device) {
      for (std::uint32_t on_host = 0; on_host < sets_; ++on_host) {
        if ((results & ~on_host) == 0) least = std::min(least, costs[on_device * sets_ + on_host]);
      }
    }
    return least;
  }

 private:
  template <class Is>
  std::uint32_t set_of(const Is& is) const {
    std::uint32_t set = 0;
    for (std::uint32_t i = 0; i < graph_.operands(); ++i) set |= is(i) ? 1u << i : 0;
    return set;
  }
  bool fits(std::uint32_t set) const {
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < graph_.operands(); ++i)
      bytes += (set >> i & 1) != 0 ? (graph_.operand(i).bytes + 127) / 128 * 128 : 0;
    return bytes <= limit_;
  }
  std::vector<std::uint32_t> after(std::uint32_t k, const std::vector<std::uint32_t>& costs) const {
    std::uint32_t reads = 0, writes = 0;
    for (const std::uint32_t i : graph_.reads(k)) reads |= 1u << i;
    for (const std::uint32_t i : graph_.writes(k)) writes |= 1u << i;
    const bool is_on_device = graph_.place(k) != 0;
    std::vector<std::uint32_t> next(costs.size(), kNoSchedule);
    for (std::uint32_t state = 0; state < costs.size(); ++state) {
      if (costs[state] == kNoSchedule) continue;
      const std::uint32_t had = state / sets_, on_host = state % sets_;
      for (std::uint32_t stays = 0; stays < sets_; ++stays) {
        if ((stays & ~had) != 0) continue;
        for (std::uint32_t comes = 0; comes < sets_; ++comes) {
          if ((comes & ~on_host) != 0) continue;
          const std::uint32_t before = stays | comes, there = is_on_device ? before | writes : before;
          if (!fits(there) || (reads & ~(is_on_device ? before : on_host)) != 0) continue;
          for (std::uint32_t goes = 0; goes < sets_; ++goes) {
            if ((goes & ~there) != 0) continue;
            const std::uint32_t host = on_host | goes | (is_on_device ? 0 : writes);
            std::uint32_t& cost = next[there * sets_ + host];
            cost = std::min(cost, costs[state] + (comes != 0 ? 1 : 0) + (goes != 0 ? 1 : 0));
          }
        }
      }
    }
    return next;
  }

  const OperandGraph& graph_;
  const std::uint64_t limit_;
  const std::uint32_t sets_;
};

/// Up to 4 operands of different sizes, and up to 6 kernels.
OperandGraph tiny_graph(std::mt19937_64& random) {
  OperandGraph graph;
  const auto operands = static_cast<std::uint32_t>(2 + random() % 3);
  std::uint32_t written = static_cast<std::uint32_t>(1 + random() % operands);
  for (std::uint32_t i = 0; i < operands; ++i)
    graph.add_operand({"", 100 + 100 * (random() % 4), i < written});
  std::vector<std::uint32_t> reads, writes;
  for (std::uint64_t kernels = 2 + random() % 5; kernels > 0; --kernels) {
    reads.clear();
    writes.clear();
    for (std::uint32_t i = 0; i < written; ++i) {
      if (random() % 2 == 0) reads.push_back(i);
    }
    if (written < operands && random() % 2 == 0) writes.push_back(written++);
    graph.add_kernel("", random() % 3 == 0 ? 0 : 1, reads, writes);
  }
  graph.want_results();
  return graph;
}

/// Returns how many graphs need more startups than without a limit.
int expect_fewest_bounded(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  int need_more = 0;
  for (int i = 0; i < kGraphs; ++i) {
    const OperandGraph graph = tiny_graph(random);
    const std::uint32_t free = bound_of(graph, 1 << 20);
    bool needs_more = false;
    for (std::uint64_t limit = 128; limit <= 4 * 512; limit += 128) {
      const std::uint32_t fewest = EverySet(graph, limit).fewest();
      if (fewest == kNoSchedule) continue;  // a kernel does not fit
      const std::uint32_t bound = bound_of(graph, limit);
      EXPECT_EQ(bound, fewest) << "seed " << seed << ", " << limit << " bytes of " << to_json(graph);
      if (bound != fewest) return need_more;
      needs_more = needs_more || fewest > free;
    }
    need_more += needs_more ? 1 : 0;
  }
  return need_more;
}

TEST(Arena, TheSearchFindsTheFewestStartupsOfEverySet) {
  expect_fewest_bounded(std::random_device{}());
  EXPECT_GT(expect_fewest_bounded(1), kGraphs / 20);
}

TEST(Arena, OperandsAtAddressesTakeTheirBytes) {
  // Neighbours of 100 bytes have no gaps on the device, though it is aligned to 128.
  OperandGraph graph;
  std::vector<std::uint32_t> all;
  for (std::uint64_t i = 0; i < 4; ++i)
    all.push_back(graph.add_operand({"", 100, true, false, 4096 + 100 * i}));
  graph.add_kernel("use", 1, all, {});
  const BoundedSchedule bounded = schedule_bounded(graph, 400);
  EXPECT_EQ(bounded.schedule.startups.size(), 1u);
  EXPECT_EQ(bounded.layout.bytes[1], 400u);
  EXPECT_THROW((void)schedule_bounded(graph, 399), Error);
}

TEST(Arena, OperandsAtAddressesKeepTheirAlignment) {
  // A float 4 bytes beyond a multiple of 128 and doubles behind it, and one that has no address.
  OperandGraph graph;
  const std::uint32_t one = graph.add_operand({"", 4, true, false, 4096 + 4}),
                      doubles = graph.add_operand({"", 80, true, false, 4096 + 8}),
                      plain = graph.add_operand({"", 8, true, false});
  const std::vector<std::uint32_t> all = {one, doubles, plain};
  graph.add_kernel("use", 1, all, {});
  const std::vector<Transfer> transfers = transfers_of(graph);
  const Layout layout = lay_out(graph, schedule_shared(graph, transfers));
  EXPECT_EQ(layout.offsets[1][one] % 128, 4u);
  EXPECT_EQ(layout.offsets[1][doubles], layout.offsets[1][one] + 4);
  EXPECT_EQ(layout.offsets[1][plain] % 128, 0u);
}

TEST(Arena, OperandsAtAddressesKeepTheirOrderInBoundedMemory) {
  // Neighbours whose numbers run against their addresses. The heuristic alone misses the fewest startups of
  // some, so the search lays them out.
  for (std::uint64_t seed = 1; seed <= kGraphs; ++seed) {
    std::mt19937_64 random(seed);
    OperandGraph graph;
    for (std::uint64_t i = 0; i < 6; ++i) graph.add_operand({"", 128, true, false, 4096 + 128 * (5 - i)});
    for (int k = 0; k < 5; ++k) {
      std::vector<std::uint32_t> reads;
      for (std::uint32_t i = 0; i < 6; ++i) {
        if (reads.size() < 3 && random() % 2 == 0) reads.push_back(i);
      }
      graph.add_kernel("", 1, reads, {});
    }
    BoundedSchedule bounded;
    ASSERT_NO_THROW(bounded = schedule_bounded(graph, 4 * 128)) << "seed " << seed;
    check_schedule(graph, bounded.transfers, bounded.schedule);
    ASSERT_LE(bounded.layout.bytes[1], 4u * 128);
  }
}

TEST(Arena, ABoundedLayoutHasTheAlignmentThatWasAskedFor) {
  // Each kernel has two operands of 16 bytes.
  const OperandGraph graph = chain_graph(20, 1, 1, 16);
  const BoundedSchedule bounded = schedule_bounded(graph, 32, 16);
  EXPECT_EQ(bounded.layout.bytes[1], 32u);
}

TEST(Arena, SmallBoundedGraphsHaveTheFewestStartupsWhereThereIsALayout) {
  int at_bound = 0, all = 0, more_than_free = 0;
  for (std::uint64_t seed = 1; seed <= kGraphs; ++seed) {
    const OperandGraph graph = random_graph({5, 4, 1, 2, 1, 1, 0.7}, seed, 1024);
    ASSERT_LE(graph.operands(), 12u);
    const std::uint64_t limit = 3 * 1024;
    BoundedSchedule bounded;
    try {
      bounded = schedule_bounded(graph, limit);
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), Error::Kind::kOutOfMemory);
      continue;  // neighbours leave holes
    }
    check_schedule(graph, bounded.transfers, bounded.schedule);
    EXPECT_LE(bounded.layout.bytes[1], limit);
    expect_apart(graph, bounded.schedule, bounded.layout);
    if (HasFailure()) return;
    ++all;
    ASSERT_GE(bounded.schedule.startups.size(), bounded.schedule.lower_bound) << "seed " << seed;
    at_bound += bounded.schedule.gap() == 0 ? 1 : 0;
    more_than_free +=
        bounded.schedule.lower_bound > schedule_exact(graph, transfers_of(graph)).startups.size() ? 1 : 0;
  }
  EXPECT_GT(all, kGraphs * 3 / 4);
  EXPECT_GE(10 * at_bound, 9 * all) << at_bound << " of " << all;
  EXPECT_GT(more_than_free, kGraphs / 20);
  std::printf("%d of %d at the bound; %d need more than without a limit\n", at_bound, all, more_than_free);
}

TEST(Arena, AllMemoryThereCouldBeIsABound) {
  const OperandGraph graph = chain_graph(20, 1, 1, 1024);
  EXPECT_EQ(schedule_bounded(graph, ~std::uint64_t{0}).schedule.startups.size(), 2u);
}

TEST(Arena, AKernelThatDoesNotFitIsNamed) {
  try {
    schedule_bounded(figure2_graph(1024), 3 * 1024);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kOutOfMemory);
    EXPECT_NE(std::string(error.what()).find("Kernel0"), std::string::npos) << error.what();
  }
}

TEST(Arena, AChainOnADeviceTakesTwoOperandsOfMemory) {
  const OperandGraph graph = chain_graph(20, 1, 1, 1024);
  const Schedule schedule = make_schedule(graph, transfers_of(graph));
  const Layout layout = lay_out(graph, schedule);
  EXPECT_EQ(layout.bytes[1], 2048u);
  EXPECT_EQ(layout.separate_bytes[1], 21u * 1024);
}

}  // namespace
}  // namespace esker::transfer
