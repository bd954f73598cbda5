// Requests and their replies, over loopback, in several shapes of the runtime.
#include "requests.hpp"

#include <esker/device/election/per_lane.hpp>
#include <esker/device/election/per_wave.hpp>
#include <esker/device/election/predicated.hpp>

#include "operations.hpp"
#include "pes.hpp"

namespace esker::testing {
namespace {

std::vector<Way> shapes() {
  if (kOnGpu) return gpu_ways();
  const auto shape = [](std::uint32_t n_pes, std::uint32_t lane_threads, std::uint32_t helpers) {
    return way(std::to_string(lane_threads) + " lane threads, " + std::to_string(helpers) + " helpers", n_pes,
               [=](Config& config) {
                 config.cpu_threads = lane_threads;
                 config.apply_helpers = helpers;
               });
  };
  return {shape(1, 1, 0), shape(1, 2, 2), shape(2, 1, 0), shape(2, 3, 1),
          shape(3, 2, 3), shape(4, 1, 0), shape(8, 1, 0)};
}

class Requests : public ::testing::TestWithParam<Way> {};

TEST_P(Requests, GetsOfEverySizeBringTheWord) {
  run_pes(GetParam(), [](Runtime& rt) {
    check_gets<std::uint8_t>(rt, "get of 1 byte");
    check_gets<std::uint16_t>(rt, "get of 2 bytes");
    check_gets<float>(rt, "get of 4 bytes");
    check_gets<std::uint64_t>(rt, "get of 8 bytes");
    check_gets<Pair>(rt, "get of 16 bytes");
  });
}

TEST_P(Requests, FetchesAreAppliedOnceAndOneAfterTheOther) {
  run_pes(GetParam(), [](Runtime& rt) {
    check_all_fetches<std::uint32_t>(rt, "u32");
    check_all_fetches<std::int64_t>(rt, "i64");
    check_fetches<std::int32_t>(rt, "fetch add i32", Fetch::kAdd);
    check_fetches<std::uint64_t>(rt, "swap u64", Fetch::kSwap);
  });
}

TEST_P(Requests, OneCompareSwapIsTheFirst) {
  run_pes(GetParam(), [](Runtime& rt) {
    check_compare_swaps<std::uint32_t>(rt);
    check_compare_swaps<std::uint64_t>(rt);
  });
}

TEST_P(Requests, AContinuationRunsOnceWithItsValue) {
  run_pes(GetParam(), [](Runtime& rt) {
    check_continuations<std::uint8_t>(rt, "continuation of 1 byte");
    check_continuations<std::uint32_t>(rt, "continuation of 4 bytes");
    check_continuations<std::uint64_t>(rt, "continuation of 8 bytes");
    check_continuations<Pair>(rt, "continuation of 16 bytes");
  });
}

TEST_P(Requests, AContinuationMayAskAgain) { run_pes(GetParam(), check_compare_swap_loops); }

// Others are outside Esker meanwhile, or in a barrier.
TEST_P(Requests, QuietWaitsForTheRepliesOfOnePe) {
  run_pes(GetParam(), [](Runtime& rt) {
    constexpr std::uint64_t kLanes = 40, kRounds = 5;
    const auto counter = rt.heap().allocate<std::uint64_t>(1);
    const auto results = rt.heap().allocate<std::uint64_t>(kLanes);
    const std::uint32_t last = rt.n_pes() - 1;
    for (std::uint64_t round = 0; round < kRounds && rt.pe() == 0; ++round) {
      rt.launch(kLanes, [=] ESKER_LAMBDA(WorkItem item) {
        shmem_fetch_add(item, &results[item.global_id()], &counter[0], 1, last);
      });
      rt.quiet();
      std::vector<bool> seen(kLanes);
      for (const std::uint64_t result : rt.heap().read(results)) {
        ASSERT_GE(result, round * kLanes);
        ASSERT_LT(result, (round + 1) * kLanes);
        seen[result - round * kLanes] = true;
      }
      EXPECT_EQ(std::count(seen.begin(), seen.end(), true), static_cast<std::ptrdiff_t>(kLanes));
    }
    rt.barrier_all();
    if (rt.pe() == last) {
      EXPECT_EQ(rt.heap().read(counter)[0], kRounds * kLanes);
    }
    rt.barrier_all();
  });
}

TEST_P(Requests, HandlersAskToo) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto source = rt.heap().allocate<std::uint64_t>(kRequests);
    const auto results = rt.heap().allocate<std::uint64_t>(kRequests);
    std::vector<std::uint64_t> mine;
    for (std::uint64_t k = 0; k < kRequests; ++k) mine.push_back(rt.pe() * kRequests + k);
    rt.heap().write(source, 0, std::span<const std::uint64_t>(mine));
    const auto handler = rt.register_handler<std::uint64_t, std::uint32_t>(
        "asks", [=] ESKER_LAMBDA(HandlerContext & context, std::uint64_t & target, const std::uint32_t& k) {
          shmem_get(context, &target, &source[k], (context.pe() + 1) % context.n_pes());
        });
    rt.launch(kRequests, [=] ESKER_LAMBDA(WorkItem item) {
      const auto k = static_cast<std::uint32_t>(item.global_id());
      shmem_am(item, handler, &results[k], k, (item.pe() + 1) % item.n_pes());
    });
    rt.barrier_all();
    const std::uint32_t next = (rt.pe() + 1) % rt.n_pes();
    const std::vector<std::uint64_t> got = rt.heap().read(results);
    for (std::uint64_t k = 0; k < kRequests; ++k) ASSERT_EQ(got[k], next * kRequests + k);
    rt.barrier_all();
  });
}

template <class Ask>
void check_election(Runtime& rt, Ask ask) {
  const auto counter = rt.heap().allocate<std::uint64_t>(1);
  const auto results = rt.heap().allocate<std::uint64_t>(kRequests);
  rt.launch(
      kRequests,
      [=] ESKER_LAMBDA(GroupItem & item) {
        const std::uint64_t k = item.global_id();
        ask(item, k % 3 != 0, &results[k], &counter[0], static_cast<std::uint32_t>(k % item.n_pes()));
      },
      "by election");
  rt.barrier_all();
  std::uint64_t asked = 0;
  for (std::uint64_t k = 0; k < kRequests; ++k)
    asked += k % 3 != 0 && k % rt.n_pes() == rt.pe() ? rt.n_pes() : 0;
  EXPECT_EQ(rt.heap().read(counter)[0], asked);
  std::uint64_t sum = 0;
  for (const std::uint64_t result : rt.heap().read(results)) sum += result;
  std::uint64_t sums[1] = {sum};
  rt.all_reduce(sums, Reduction::kSum);
  std::uint64_t totals[1] = {asked * (asked - 1) / 2};
  rt.all_reduce(totals, Reduction::kSum);
  EXPECT_EQ(sums[0], totals[0]);
  rt.heap().free(results);
  rt.heap().free(counter);
}

TEST_P(Requests, TravelByEveryElection) {
  run_pes(GetParam(), [](Runtime& rt) {
    check_election(rt, [] ESKER_LAMBDA(GroupItem & item, bool asks, std::uint64_t* result,
                                       std::uint64_t* counter, std::uint32_t pe) {
      if (asks) shmem_fetch_inc(item, result, counter, pe);
    });
    check_election(rt, [] ESKER_LAMBDA(GroupItem & item, bool asks, std::uint64_t* result,
                                       std::uint64_t* counter, std::uint32_t pe) {
      if (asks) shmem_fetch_inc(item, result, counter, pe, PerLane{});
    });
    check_election(
        rt, [] ESKER_LAMBDA(GroupItem & item, bool asks, std::uint64_t* result, std::uint64_t* counter,
                            std::uint32_t pe) { shmem_fetch_inc(item, result, counter, pe, PerWave{asks}); });
    check_election(rt, [] ESKER_LAMBDA(GroupItem & item, bool asks, std::uint64_t* result,
                                       std::uint64_t* counter, std::uint32_t pe) {
      if (asks) shmem_fetch_inc(item, result, counter, pe, PerConvergedWave{});
    });
    check_election(rt, [] ESKER_LAMBDA(GroupItem & item, bool asks, std::uint64_t* result,
                                       std::uint64_t* counter, std::uint32_t pe) {
      shmem_fetch_inc(item, result, counter, pe, Predicated{asks});
    });
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, Requests, ::testing::ValuesIn(shapes()));

}  // namespace
}  // namespace esker::testing
