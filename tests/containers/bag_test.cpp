// Bags: each element is in it once; full ones; files.
#include <cstdint>
#include <string>
#include <vector>

#include "containers.hpp"

namespace esker::testing {
namespace {

using containers::Bag;

constexpr std::uint64_t kLanes = 200;

struct Thing {
  std::uint64_t number;
  std::uint32_t square;
};

class Bags : public ::testing::TestWithParam<Way> {};

/// Collective. How often each number is in it.
std::vector<std::uint64_t> counts_of(Runtime& rt, const Bag<Thing>& bag, std::uint64_t numbers) {
  std::vector<std::uint64_t> counts(numbers);
  bag.for_each_local(rt, [&](const Thing& thing) {
    ASSERT_LT(thing.number, numbers);
    EXPECT_EQ(thing.square, static_cast<std::uint32_t>(thing.number * thing.number));
    ++counts[thing.number];
  });
  rt.all_reduce(counts, Reduction::kSum);
  return counts;
}

template <class Insert>
void fill(Runtime& rt, const Insert& insert) {
  rt.launch(kLanes, [=] ESKER_LAMBDA(WorkItem item) {
    const std::uint64_t number = item.pe() * kLanes + item.global_id();
    insert(item, Thing{number, static_cast<std::uint32_t>(number * number)});
  });
  rt.barrier_all();
}

TEST_P(Bags, HaveEachElementOnce) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto bag = Bag<Thing>::allocate(rt, "bag", 2 * kLanes);
    fill(rt, [=] ESKER_LAMBDA(const WorkItem& item, const Thing& thing) { bag.insert(item, thing); });
    rt.barrier_all();
    EXPECT_EQ(bag.size(rt), kLanes * rt.n_pes());
    for (const std::uint64_t count : counts_of(rt, bag, kLanes * rt.n_pes())) EXPECT_EQ(count, 1u);
    // About as many on each PE: the deviation is 14 or less.
    EXPECT_GT(bag.local_size(rt), kLanes - 90);
    rt.barrier_all();
    bag.clear(rt);
    EXPECT_EQ(bag.size(rt), 0u);
  });
}

TEST_P(Bags, TakeElementsOnThePeThatACallNames) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto bag = Bag<Thing>::allocate(rt, "bag", kLanes * rt.n_pes());
    fill(rt, [=] ESKER_LAMBDA(const WorkItem& item, const Thing& thing) {
      bag.insert(item, thing, item.n_pes() - 1);
    });
    EXPECT_EQ(bag.local_size(rt), rt.pe() + 1 == rt.n_pes() ? kLanes * rt.n_pes() : 0);
    const auto sum = rt.heap().allocate<std::uint64_t>(1);
    bag.launch_local(
        rt, [=] ESKER_LAMBDA(WorkItem & item, Thing & thing) { shmem_add(item, &sum[0], thing.number, 0); },
        "sum");
    rt.barrier_all();
    const std::uint64_t n = kLanes * rt.n_pes();
    if (rt.pe() == 0) {
      EXPECT_EQ(rt.heap().read(sum)[0], n * (n - 1) / 2);
    }
    rt.barrier_all();
  });
}

TEST_P(Bags, ComeBackFromAFile) {
  const TemporaryFile file("bag");
  run_pes(GetParam(), [&](Runtime& rt) {
    const auto bag = Bag<Thing>::allocate(rt, "bag", kLanes * rt.n_pes());
    fill(rt, [=] ESKER_LAMBDA(const WorkItem& item, const Thing& thing) { bag.insert(item, thing, 0); });
    bag.save(rt, file.name());
    const auto again = Bag<Thing>::load(rt, "again", file.name());
    EXPECT_EQ(again.local_size(rt), kLanes);
    for (const std::uint64_t count : counts_of(rt, again, kLanes * rt.n_pes())) EXPECT_EQ(count, 1u);
    rt.barrier_all();
  });
}

TEST_P(Bags, AFullOneSaysHowLargeItMustBe) {
  Pes pes(GetParam().n_pes, GetParam().config);
  const auto failed = pes.run_and_catch([](Runtime& rt) {
    const auto bag = Bag<Thing>::allocate(rt, "small", 10);
    fill(rt, [=] ESKER_LAMBDA(const WorkItem& item, const Thing& thing) { bag.insert(item, thing, 0); });
    bag.size(rt);
  });
  const std::string came = std::to_string(kLanes * GetParam().n_pes);
  for (const auto& failure : failed) {
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->kind, Error::Kind::kOutOfMemory);
    EXPECT_EQ(failure->message, "bag 'small' is full: PE 0 was sent " + came +
                                    " elements and has room for 10; make it for " + came +
                                    " elements of each PE or more");
  }
}

INSTANTIATE_TEST_SUITE_P(Pes, Bags, ::testing::ValuesIn(container_ways()));

}  // namespace
}  // namespace esker::testing
