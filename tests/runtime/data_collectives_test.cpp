// Collective calls on data, over PEs that are threads: every result on 1 to 8 PEs, and PEs that do not agree.
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "../device/gtest.hpp"
#include "collective_bodies.hpp"
#include "pes.hpp"

namespace esker::testing {
namespace {

Config with_heap() {
  Config config = tiny_config();
  config.heap_bytes = 4 << 20;
  return config;
}

class CollectiveCalls : public ::testing::TestWithParam<CollectiveCase> {};

TEST_P(CollectiveCalls, GiveWhatALoopOverThePesGives) {
  for (const std::uint32_t n :
       kIsSlow ? std::vector<std::uint32_t>{1, 3, 5} : std::vector<std::uint32_t>{1, 2, 3, 4, 8}) {
    SCOPED_TRACE(n);
    run_pes(n, with_heap(), GetParam().body);
  }
}
INSTANTIATE_TEST_SUITE_P(On1To8Pes, CollectiveCalls, ::testing::ValuesIn(kCollectiveCases),
                         [](const auto& test) { return test.param.name; });

class Mismatches : public ::testing::TestWithParam<Mismatch> {};

TEST_P(Mismatches, AreErrorsEverywhereThatNameBothSidesAndTheJobGoesOn) {
  for (const std::uint32_t n : {2u, 3u}) {
    run_pes(n, [&](Runtime& rt) { check_mismatch(rt, GetParam(), "PE " + std::to_string(n - 1)); });
  }
}
INSTANTIATE_TEST_SUITE_P(On2And3Pes, Mismatches, ::testing::ValuesIn(kMismatches),
                         [](const auto& test) { return test.param.name; });

// Of which a std::vector has no data().
TEST(DataCollectives, GatherBools) {
  run_pes(3, [](Runtime& rt) {
    const std::vector<bool> expected{false, true, false};
    EXPECT_EQ(all_gather(rt, rt.pe() == 1), expected);
    EXPECT_EQ(gather(rt, rt.pe() == 1, 2), rt.pe() == 2 ? expected : std::vector<bool>{});
  });
}

TEST(DataCollectives, LeaveValuesAsTheyWereWhenPesDoNotAgree) {
  run_pes(2, [](Runtime& rt) {
    std::vector<std::uint64_t> values(100'000 + rt.pe(), rt.pe());
    EXPECT_THROW(all_reduce(rt, values, Reduction::kSum), Error);
    EXPECT_THROW(broadcast(rt, values), Error);
    EXPECT_EQ(values, std::vector<std::uint64_t>(100'000 + rt.pe(), rt.pe()));
  });
}

/// An operation of the program's that throws on one PE, where the others wait for its slice.
TEST(DataCollectives, EndTheJobWhereAnOperationThrowsThatOthersWaitFor) {
  const auto failures = Pes(3).run_and_catch([](Runtime& rt) {
    std::vector<std::uint64_t> values(100'000, 1);
    all_reduce(rt, values, [&](std::uint64_t a, std::uint64_t b) {
      if (rt.pe() == 1) throw std::runtime_error("this sum is forbidden");
      return a + b;
    });
  });
  for (const auto& failure : failures) {
    ASSERT_TRUE(failure);
    EXPECT_NE(failure->message.find("this sum is forbidden"), std::string::npos) << failure->message;
  }
  EXPECT_NE(failures[0]->message.find("PE 1: all_reduce"), std::string::npos) << failures[0]->message;
}

TEST(DataCollectives, ThrowWhereAPeHasLeft) {
  const auto failures = Pes(3).run_and_catch([](Runtime& rt) {
    if (rt.pe() == 2) throw std::runtime_error("enough");
    std::vector<std::uint64_t> values(100'000, 1);
    broadcast(rt, values);
  });
  EXPECT_NE(failures[0]->message.find("PE 2 has left"), std::string::npos) << failures[0]->message;
  EXPECT_NE(failures[1]->message.find("PE 2 has left"), std::string::npos) << failures[1]->message;
}

TEST(DataCollectives, SumRealNumbersAlikeOnEveryPeAndInEveryRun) {
  // Sums of such numbers depend on the order; each PE and each run has the same.
  std::vector<double> first;
  for (int run = 0; run < 3; ++run) {
    std::vector<std::vector<double>> sums(4);
    run_pes(4, [&](Runtime& rt) {
      std::vector<double> values(30'000);
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = 1.0 / static_cast<double>(scrambled(i * 4 + rt.pe()) % 1000 + 1);
      all_reduce(rt, values, Reduction::kSum);
      sums[rt.pe()] = values;
    });
    if (first.empty()) first = sums[0];
    for (const auto& sum : sums) EXPECT_EQ(sum, first);
  }
}

}  // namespace
}  // namespace esker::testing
