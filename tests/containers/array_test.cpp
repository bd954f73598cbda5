// Arrays: each operation reaches the element that its index names, once; files; the check of bounds.
#define ESKER_CHECK_BOUNDS 1
#include <cstdint>
#include <string>

#include "containers.hpp"

namespace esker::testing {
namespace {

using containers::Array;
using containers::Block;
using containers::Cyclic;

constexpr std::uint64_t kSize = 203;
ESKER_HD constexpr std::uint64_t value_of(std::uint64_t i) { return i * i + 7; }

class Arrays : public ::testing::TestWithParam<Way> {};

// Each PE puts its share of the elements, wherever these stand; every PE adds to all.
template <class Distribution>
void check_updates_of(Runtime& rt) {
  auto array = Array<std::uint64_t, Distribution>::allocate(rt, kSize);
  rt.launch(kSize, [=] ESKER_LAMBDA(WorkItem item) {
    const std::uint64_t i = item.global_id();
    if (i % item.n_pes() == item.pe()) array.put(item, i, value_of(i));
  });
  rt.barrier_all();
  rt.launch(kSize, [=] ESKER_LAMBDA(WorkItem item) {
    array.add(item, item.global_id(), 10 * (item.pe() + 1));
    array.inc(item, item.global_id());
  });
  rt.barrier_all();
  const std::uint64_t n = rt.n_pes();
  std::uint64_t seen = 0;
  array.for_each_local(rt, [&](std::uint64_t i, std::uint64_t value) {
    EXPECT_EQ(array.owner(i), rt.pe());
    EXPECT_EQ(value, value_of(i) + 10 * n * (n + 1) / 2 + n);
    ++seen;
  });
  EXPECT_EQ(seen, array.count(rt.pe()));
  EXPECT_EQ(sum_over_pes(rt, seen), kSize);
  rt.barrier_all();
  array.free(rt);
}

TEST_P(Arrays, UpdateTheElementThatTheIndexNamesOnce) {
  run_pes(GetParam(), [](Runtime& rt) {
    check_updates_of<Block>(rt);
    check_updates_of<Cyclic>(rt);
  });
}

TEST_P(Arrays, AreUpdatedAndReadByTheProgramItself) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto array = Array<std::uint64_t, Cyclic>::allocate(rt, kSize);
    const auto got = rt.heap().allocate<std::uint64_t>(kSize);
    for (std::uint64_t i = rt.pe(); i < kSize; i += rt.n_pes()) array.put(rt, kSize - 1 - i, value_of(i));
    rt.barrier_all();
    for (std::uint64_t i = 0; i < kSize; ++i) array.add(rt, i, 1);
    rt.barrier_all();
    for (std::uint64_t i = 0; i < kSize; ++i) array.get(rt, &got[i], i);
    rt.quiet();
    const auto values = rt.heap().read(got);
    for (std::uint64_t i = 0; i < kSize; ++i) ASSERT_EQ(values[i], value_of(kSize - 1 - i) + rt.n_pes()) << i;
    rt.barrier_all();
  });
}

template <class Distribution>
void check_requests_of(Runtime& rt) {
  auto array = Array<std::uint64_t, Distribution>::allocate(rt, kSize);
  array.fill(rt, [](std::uint64_t i) { return value_of(i); });
  const auto got = rt.heap().allocate<std::uint64_t>(kSize);
  const auto before = rt.heap().allocate<std::uint64_t>(kSize);
  rt.barrier_all();
  rt.launch(kSize,
            [=] ESKER_LAMBDA(WorkItem item) { array.get(item, &got[item.global_id()], item.global_id()); });
  rt.barrier_all();
  const auto values = rt.heap().read(got);
  for (std::uint64_t i = 0; i < kSize; ++i) ASSERT_EQ(values[i], value_of(i)) << i;
  rt.launch(kSize, [=] ESKER_LAMBDA(WorkItem item) {
    array.fetch_add(item, &before[item.global_id()], item.global_id(), std::uint64_t{1} << 32);
  });
  rt.barrier_all();
  // Of each element, the PEs' answers together are 0, 1, ... additions.
  std::uint64_t additions = 0;
  const auto answers = rt.heap().read(before);
  for (std::uint64_t i = 0; i < kSize; ++i) {
    ASSERT_EQ(answers[i] & 0xffffffff, value_of(i));
    additions += answers[i] >> 32;
  }
  const std::uint64_t n = rt.n_pes();
  EXPECT_EQ(sum_over_pes(rt, additions), kSize * n * (n - 1) / 2);
  rt.heap().free(before);
  rt.heap().free(got);
  array.free(rt);
}

TEST_P(Arrays, BringTheElementThatTheIndexNames) {
  run_pes(GetParam(), [](Runtime& rt) {
    check_requests_of<Block>(rt);
    check_requests_of<Cyclic>(rt);
  });
}

TEST_P(Arrays, ComeBackFromAFileInAnyDistribution) {
  const TemporaryFile file("array");
  run_pes(GetParam(), [&](Runtime& rt) {
    auto array = Array<std::uint32_t, Cyclic>::allocate(rt, kSize);
    array.fill(rt, [](std::uint64_t i) { return static_cast<std::uint32_t>(value_of(i)); });
    rt.barrier_all();
    array.save(rt, file.name());
    const auto again = Array<std::uint32_t, Block>::load(rt, file.name());
    EXPECT_EQ(again.size(), kSize);
    std::uint64_t seen = 0;
    again.for_each_local(rt, [&](std::uint64_t i, std::uint32_t value) {
      EXPECT_EQ(value, static_cast<std::uint32_t>(value_of(i))) << i;
      ++seen;
    });
    EXPECT_EQ(sum_over_pes(rt, seen), kSize);
  });
}

TEST_P(Arrays, LargerThanAnyHeapAreRefused) {
  run_pes(GetParam(), [](Runtime& rt) {
    for (const std::uint64_t size : {~std::uint64_t{0}, ~std::uint64_t{0} - 1}) {
      EXPECT_THROW((Array<std::uint8_t, Block>::allocate(rt, size)), Error) << size;
      EXPECT_THROW((Array<std::uint8_t, Cyclic>::allocate(rt, size)), Error) << size;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Pes, Arrays, ::testing::ValuesIn(container_ways()));

#if !defined(ESKER_TEST_CUDA) && !defined(ESKER_TEST_HIP)
TEST(ArraysDeathTest, AnIndexBeyondTheEndEndsTheJobWithTheValues) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Way way = container_ways()[0];
  EXPECT_DEATH(run_pes(way,
                       [](Runtime& rt) {
                         const auto array = Array<std::uint64_t>::allocate(rt, 10);
                         rt.launch(
                             1, [=] ESKER_LAMBDA(WorkItem item) { array.put(item, 17, 1); }, "wrong");
                         rt.barrier_all();
                       }),
               "array put by lane 0 of group 0 of kernel 'wrong': index 17 of an array of 10 elements");
}
#endif

}  // namespace
}  // namespace esker::testing
