// Puts with signals, and the waits for them, over loopback.
#include <array>
#include <thread>
#include <vector>

#include "pes.hpp"
#include "updates.hpp"

namespace esker::testing {
namespace {

std::vector<Way> ways() {
  if (kOnGpu) return gpu_ways();
  std::vector<Way> all;
  for (const std::uint32_t n : {1u, 2u, 3u, 4u, 8u}) all.push_back(way("plain", n, [](Config&) {}));
  all.push_back(way("helpers", 3, [](Config& config) { config.apply_helpers = 3; }));
  return all;
}

class Signals : public ::testing::TestWithParam<Way> {};

/// Every lane puts a value at the next PE, which counts them and then looks.
template <class T>
void check_counted_puts(Runtime& rt) {
  constexpr std::uint64_t kLanes = kOnGpu ? 200 : 500;
  const std::uint32_t next = (rt.pe() + 1) % rt.n_pes();
  const std::uint32_t before = (rt.pe() + rt.n_pes() - 1) % rt.n_pes();
  const auto values = rt.heap().allocate<T>(kLanes);
  const auto count = rt.heap().allocate<std::uint64_t>(1);
  rt.launch(kLanes, [=] ESKER_LAMBDA(WorkItem item) {
    const std::uint64_t k = item.global_id();
    shmem_put_signal(item, &values[k], value_put<T>(7, item.pe(), k), &count[0], 1, SignalUpdate::kAdd, next);
  });
  if (kOnGpu) rt.quiet();  // else what lanes have sent leaves while this PE waits
  EXPECT_EQ(rt.wait_until(&count[0], Comparison::kGreaterEqual, kLanes), kLanes);
  const std::vector<T> got = rt.heap().read(values);
  std::uint64_t wrong = 0;
  for (std::uint64_t k = 0; k < kLanes; ++k) {
    const T expected = value_put<T>(7, before, k);
    wrong += std::memcmp(&got[k], &expected, sizeof expected) != 0 ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0u) << sizeof(T) << " bytes";
  rt.barrier_all();
  rt.heap().free(count);
  rt.heap().free(values);
}

TEST_P(Signals, AreSeenAfterTheirPuts) {
  run_pes(GetParam(), [](Runtime& rt) {
    check_counted_puts<std::uint8_t>(rt);
    check_counted_puts<std::uint32_t>(rt);
    check_counted_puts<std::uint64_t>(rt);
    check_counted_puts<std::array<std::uint64_t, 2>>(rt);
  });
}

// A token goes round: each PE waits for it, and passes it on from the host.
TEST_P(Signals, PassATokenRound) {
  run_pes(GetParam(), [](Runtime& rt) {
    const std::uint64_t rounds = kOnGpu ? 3 : 20;
    const auto token = rt.heap().allocate<std::uint64_t>(1);
    const auto signal = rt.heap().allocate<std::uint64_t>(1);
    const std::uint32_t next = (rt.pe() + 1) % rt.n_pes();
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      if (rt.pe() == 0) rt.put_signal(&token[0], round * 100, &signal[0], round, SignalUpdate::kSet, next);
      ASSERT_EQ(rt.wait_until(&signal[0], Comparison::kEqual, round), round);
      const std::uint64_t held = rt.heap().read(token)[0];
      ASSERT_EQ(held, round * 100 + (rt.pe() + rt.n_pes() - 1) % rt.n_pes());
      if (rt.pe() != 0) rt.put_signal(&token[0], held + 1, &signal[0], round, SignalUpdate::kSet, next);
    }
    rt.barrier_all();
  });
}

TEST_P(Signals, AnyOfSeveralWordsEndsAWait) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto words = rt.heap().allocate<std::uint64_t>(5);
    const std::vector<const std::uint64_t*> all{&words[0], &words[1], &words[2], &words[3], &words[4]};
    EXPECT_FALSE(rt.test(&words[3], Comparison::kNotEqual, 0));
    rt.barrier_all();
    rt.put(&words[3], 4, (rt.pe() + 1) % rt.n_pes());
    EXPECT_EQ(rt.wait_any(all, Comparison::kGreater, 0), 3u);
    EXPECT_TRUE(rt.test(&words[3], Comparison::kLessEqual, 4));
    rt.barrier_all();
  });
}

TEST_P(Signals, AKernelStartsWhenItsWordHasChanged) {
  run_pes(GetParam(), [](Runtime& rt) {
    constexpr std::uint64_t kLanes = 64;
    const auto data = rt.heap().allocate<std::uint64_t>(kLanes);
    const auto doubled = rt.heap().allocate<std::uint64_t>(kLanes);
    const auto count = rt.heap().allocate<std::uint64_t>(1);
    const std::uint32_t next = (rt.pe() + 1) % rt.n_pes();
    for (std::uint64_t k = 0; k < kLanes; ++k)
      rt.put_signal(&data[k], k + 1, &count[0], 1, SignalUpdate::kAdd, next);
    rt.launch_when(&count[0], Comparison::kEqual, kLanes, kLanes,
                   [=] ESKER_LAMBDA(Lane lane) { doubled[lane.global_id()] = 2 * data[lane.global_id()]; });
    rt.quiet();
    const std::vector<std::uint64_t> got = rt.heap().read(doubled);
    for (std::uint64_t k = 0; k < kLanes; ++k) ASSERT_EQ(got[k], 2 * (k + 1));
    rt.barrier_all();
  });
}

INSTANTIATE_TEST_SUITE_P(Ways, Signals, ::testing::ValuesIn(ways()));

}  // namespace
}  // namespace esker::testing
