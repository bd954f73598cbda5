// The exact schedule beside brute force: every order in memory and every time of every transfer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <esker/transfer/plan/operand_graph.hpp>
#include <esker/transfer/plan/schedule.hpp>
#include <esker/transfer/plan/stabbing.hpp>
#include <esker/transfer/plan/transfers.hpp>

namespace esker::transfer {
namespace {

/// Up to 6 operands, mostly 5 or 6, and 1 to 8 kernels, on the host or one of `devices` devices.
OperandGraph small_graph(std::mt19937_64& random, std::uint32_t devices) {
  OperandGraph graph;
  const auto operands = static_cast<std::uint32_t>(random() % 5 == 0 ? 1 + random() % 6 : 5 + random() % 2);
  const auto on_entry = static_cast<std::uint32_t>(random() % (operands + 1));
  for (std::uint32_t i = 0; i < operands; ++i) graph.add_operand({"", 8, i < on_entry, false});
  const auto kernels = static_cast<std::uint32_t>(1 + random() % 8);
  std::uint32_t written = on_entry;
  std::vector<std::uint32_t> reads, writes;
  for (std::uint32_t k = 0; k < kernels; ++k) {
    reads.clear();
    writes.clear();
    for (std::uint32_t i = 0; i < written; ++i) {
      if (random() % 3 == 0) reads.push_back(i);
    }
    for (std::uint64_t i = random() % 3; i > 0 && written < operands; --i) writes.push_back(written++);
    graph.add_kernel("", static_cast<std::uint32_t>(random() % (devices + 1)), reads, writes);
  }
  graph.want_results();
  for (std::uint32_t i = on_entry; i < written; ++i) {
    if (random() % 4 == 0) graph.set_on_exit(i, true);
  }
  return graph;
}

/// Whether some order and some times need no more than `limit` startups. Operands are placed one after the
/// other, each with each of its times; what has cost more than the limit is not continued.
class BruteForce {
 public:
  explicit BruteForce(const std::vector<Transfer>& transfers) : transfers_{transfers} {}

  bool reaches(std::uint32_t limit) {
    limit_ = limit;
    return place(0, nullptr, 0, 0);
  }

 private:
  bool place(std::uint32_t placed, const Transfer* last, std::uint32_t last_time, std::uint32_t cost) {
    if (placed == (1u << transfers_.size()) - 1) return true;
    for (std::size_t i = 0; i < transfers_.size(); ++i) {
      if ((placed >> i & 1) != 0) continue;
      const Transfer& next = transfers_[i];
      for (std::uint32_t time = next.earliest; time <= next.latest; ++time) {
        const bool joins =
            last != nullptr && last->from == next.from && last->to == next.to && last_time == time;
        const std::uint32_t sum = cost + (joins ? 0 : 1);
        if (sum <= limit_ && place(placed | 1u << i, &next, time, sum)) return true;
      }
    }
    return false;
  }

  const std::vector<Transfer>& transfers_;
  std::uint32_t limit_ = 0;
};

void expect_exact(const OperandGraph& graph, std::uint64_t number) {
  const std::vector<Transfer> transfers = transfers_of(graph);
  const Schedule schedule = schedule_exact(graph, transfers);
  check_schedule(graph, transfers, schedule);
  const auto startups = static_cast<std::uint32_t>(schedule.startups.size());
  ASSERT_EQ(startups, schedule.certificate.size()) << to_json(graph);
  BruteForce brute_force(transfers);
  ASSERT_TRUE(brute_force.reaches(startups)) << "graph " << number << "\n" << to_json(graph);
  if (startups > 0) {
    ASSERT_FALSE(brute_force.reaches(startups - 1)) << "graph " << number << "\n" << to_json(graph);
  }
  // The certificate: transfers that can share no startup.
  for (std::size_t a = 0; a < schedule.certificate.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const Transfer &one = transfers[schedule.certificate[a]], &other = transfers[schedule.certificate[b]];
      ASSERT_TRUE(one.from != other.from || one.to != other.to || one.latest < other.earliest ||
                  other.latest < one.earliest);
    }
  }
}

#if defined(ESKER_TEST_SANITIZED)
constexpr std::uint64_t kGraphs = 10'000;
#else
constexpr std::uint64_t kGraphs = 100'000;
#endif

TEST(ExactSchedules, EqualBruteForceOnRandomGraphs) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  std::uint64_t transfers = 0, startups = 0;
  for (std::uint64_t i = 0; i < kGraphs; ++i) {
    const OperandGraph graph = small_graph(random, 1);
    expect_exact(graph, i);
    if (HasFatalFailure()) return;
    const std::vector<Transfer> all = transfers_of(graph);
    transfers += all.size();
    startups += disjoint_transfers(all).size();
  }
  // They are not all trivial: of so many the means hardly vary.
  EXPECT_GT(transfers, 2 * kGraphs);
  EXPECT_LT(startups, transfers * 9 / 10);
}

TEST(ExactSchedules, EqualBruteForceOnSeveralDevicesWhereEachOperandCrossesOnce) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  std::uint64_t checked = 0;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const OperandGraph graph = small_graph(random, 3);
    if (!crosses_once(graph, transfers_of(graph))) continue;
    ++checked;
    expect_exact(graph, i);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(checked, 1000u);
}

}  // namespace
}  // namespace esker::transfer
