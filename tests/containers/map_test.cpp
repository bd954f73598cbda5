// Maps and sets: each operation is carried out once, on the key's own value; full ones; files.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "containers.hpp"

namespace esker::testing {
namespace {

using containers::CountingSet;
using containers::Found;
using containers::Map;
using containers::Set;

constexpr std::uint64_t kLanes = kIsSlow ? 120 : 300;
constexpr std::uint64_t kKeys = 97;  // below, of all PEs

struct Point {  // a key of 12 bytes
  std::uint32_t x, y, z;
};
ESKER_HD Point point_of(std::uint64_t i) {
  return {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(7 * i), 3};
}
struct Total {
  std::uint64_t sum;
  std::uint32_t visits;
  std::uint32_t most;
};

class Maps : public ::testing::TestWithParam<Way> {};

TEST_P(Maps, InsertKeepsTheFirstAndAssignTheLast) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto map = Map<Point, std::uint64_t>::allocate(rt, "points", kKeys);
    const auto insert = map.register_insert(rt);
    const auto assign = map.register_assign(rt);
    rt.launch(kLanes, [=] ESKER_LAMBDA(WorkItem item) {
      const std::uint64_t i = item.global_id() % kKeys;
      insert(item, point_of(i), 1000 + i);
    });
    rt.barrier_all();
    rt.launch(kLanes, [=] ESKER_LAMBDA(WorkItem item) {
      const std::uint64_t i = item.global_id() % kKeys;
      insert(item, point_of(i), 5);
      if (i % 2 == 0) assign(item, point_of(i), 2000 + i);
    });
    rt.barrier_all();
    std::uint64_t here = 0;
    map.for_each_local(rt, [&](const Point& key, std::uint64_t value) {
      EXPECT_EQ(key.y, 7 * key.x);
      EXPECT_EQ(value, (key.x % 2 == 0 ? 2000 : 1000) + key.x);
      ++here;
    });
    EXPECT_EQ(map.local_size(rt), here);
    EXPECT_EQ(map.size(rt), kKeys);
    EXPECT_EQ(sum_over_pes(rt, here), kKeys);
  });
}

// Plain words of 16 bytes: a visitor that is not alone loses some, and ThreadSanitizer sees it.
TEST_P(Maps, EachVisitIsMadeOnceOnItsOwnKey) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto map = Map<std::uint64_t, Total>::allocate(rt, "totals", kKeys);
    const auto add = map.register_visit_or_insert<std::uint32_t>(
        rt, "add", [] ESKER_LAMBDA(const std::uint64_t& key, Total& total, const std::uint32_t& x) {
          total.sum += key * x;
          ++total.visits;
          if (x > total.most) total.most = x;
        });
    rt.launch(kLanes, [=] ESKER_LAMBDA(WorkItem item) {
      const std::uint64_t i = item.global_id();
      add(item, i * i % kKeys, static_cast<std::uint32_t>(item.pe() * kLanes + i));
    });
    rt.barrier_all();
    std::map<std::uint64_t, Total> expected;
    for (std::uint64_t pe = 0; pe < rt.n_pes(); ++pe) {
      for (std::uint64_t i = 0; i < kLanes; ++i) {
        Total& total = expected[i * i % kKeys];
        const auto x = static_cast<std::uint32_t>(pe * kLanes + i);
        total.sum += i * i % kKeys * x;
        ++total.visits;
        total.most = std::max(total.most, x);
      }
    }
    EXPECT_EQ(map.size(rt), expected.size());
    map.for_each_local(rt, [&](std::uint64_t key, const Total& total) {
      EXPECT_EQ(total.visits, expected[key].visits) << key;
      EXPECT_EQ(total.sum, expected[key].sum) << key;
      EXPECT_EQ(total.most, expected[key].most) << key;
    });
  });
}

TEST_P(Maps, VisitLeavesAbsentKeysOut) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto map = Map<std::uint32_t, std::uint32_t>::allocate(rt, "few", kKeys);
    const auto insert = map.register_insert(rt);
    const auto bump = map.register_visit(rt, "bump", [] ESKER_LAMBDA(std::uint32_t & value) { ++value; });
    if (rt.pe() == 0) {
      rt.launch(kKeys, [=] ESKER_LAMBDA(WorkItem item) {
        const auto key = static_cast<std::uint32_t>(item.global_id());
        if (key % 3 == 0) insert(item, key, 10);
      });
    }
    rt.barrier_all();
    rt.launch(kKeys,
              [=] ESKER_LAMBDA(WorkItem item) { bump(item, static_cast<std::uint32_t>(item.global_id())); });
    rt.barrier_all();
    EXPECT_EQ(map.size(rt), (kKeys + 2) / 3);
    map.for_each_local(rt, [&](std::uint32_t key, std::uint32_t value) {
      EXPECT_EQ(key % 3, 0u);
      EXPECT_EQ(value, 10 + rt.n_pes());
    });
  });
}

/// A continuation's arguments.
struct Answer {
  Found<std::uint64_t> value;
  std::uint64_t asked;
};

TEST_P(Maps, FindBringsTheValueOrSaysThatThereIsNone) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto map = Map<Point, std::uint64_t>::allocate(rt, "points", kKeys);
    const auto insert = map.register_insert(rt);
    const auto find = map.register_find(rt);
    const auto find_then = map.register_find<std::uint64_t, Answer>(rt);
    const auto found = rt.heap().allocate<Found<std::uint64_t>>(kKeys);
    const auto told = rt.heap().allocate<std::uint64_t>(kKeys);
    const auto tell = rt.register_handler<std::uint64_t, Answer>(
        "tell", [] ESKER_LAMBDA(HandlerContext&, std::uint64_t & target, const Answer& answer) {
          target += answer.value.exists ? answer.value.value + answer.asked : 1;
        });
    rt.launch(kKeys, [=] ESKER_LAMBDA(WorkItem item) {
      const std::uint64_t i = item.global_id();
      if (i % 4 != 0 && i % item.n_pes() == item.pe()) insert(item, point_of(i), 100 * i);
    });
    rt.barrier_all();
    rt.launch(kKeys, [=] ESKER_LAMBDA(WorkItem item) {
      const std::uint64_t i = item.global_id();
      find(item, &found[i], point_of(i));
      find_then(item, then(tell, &told[i], {{}, i}), point_of(i));
    });
    rt.barrier_all();
    const auto values = rt.heap().read(found);
    const auto sums = rt.heap().read(told);
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      ASSERT_EQ(values[i].exists, i % 4 != 0) << i;
      ASSERT_EQ(values[i].value, i % 4 != 0 ? 100 * i : 0) << i;
      ASSERT_EQ(sums[i], i % 4 != 0 ? 101 * i : 1) << i;
    }
    rt.barrier_all();
  });
}

TEST_P(Maps, LanesIterateOverThePartOfTheirPe) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto map = Map<std::uint64_t, std::uint64_t>::allocate(rt, "numbers", kKeys);
    const auto insert = map.register_insert(rt);
    const auto sum = rt.heap().allocate<std::uint64_t>(1);
    rt.launch(kKeys,
              [=] ESKER_LAMBDA(WorkItem item) { insert(item, item.global_id(), 3 * item.global_id()); });
    rt.barrier_all();
    map.launch_local(
        rt,
        [=] ESKER_LAMBDA(WorkItem & item, const std::uint64_t& key, std::uint64_t& value) {
          value += key;
          shmem_add(item, &sum[0], value, 0);
        },
        "four times");
    rt.barrier_all();
    if (rt.pe() == 0) {
      EXPECT_EQ(rt.heap().read(sum)[0], 4 * kKeys * (kKeys - 1) / 2);
    }
    map.for_each_local(rt, [](std::uint64_t key, std::uint64_t value) { EXPECT_EQ(value, 4 * key); });
    rt.barrier_all();
    map.clear(rt);
    EXPECT_EQ(map.size(rt), 0u);
  });
}

TEST_P(Maps, TheProgramItselfInsertsAndAsks) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto map = Map<Point, std::uint64_t>::allocate(rt, "points", kKeys);
    const auto insert = map.register_insert(rt);
    const auto find = map.register_find(rt);
    const auto find_then = map.register_find<std::uint64_t, Answer>(rt);
    const auto counts = CountingSet<std::uint64_t>::allocate(rt, "counts", kKeys);
    const auto found = rt.heap().allocate<Found<std::uint64_t>>(kKeys);
    const auto told = rt.heap().allocate<std::uint64_t>(1);
    const auto tell = rt.register_handler<std::uint64_t, Answer>(
        "tell", [] ESKER_LAMBDA(HandlerContext&, std::uint64_t & target, const Answer& answer) {
          target += answer.value.value + answer.asked;
        });
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      if (i % rt.n_pes() == rt.pe()) insert(rt, point_of(i), 100 * i);
      counts.insert(rt, i);
      counts.insert(rt, i, 9);
    }
    rt.barrier_all();
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      find(rt, &found[i], point_of(i));
      find_then(rt, then(tell, &told[0], {{}, i}), point_of(i));
    }
    rt.barrier_all();
    const auto values = rt.heap().read(found);
    for (std::uint64_t i = 0; i < kKeys; ++i) ASSERT_EQ(values[i].value, 100 * i);
    EXPECT_EQ(rt.heap().read(told)[0], 101 * kKeys * (kKeys - 1) / 2);
    counts.for_each_local(rt, [&](std::uint64_t, std::uint64_t count) { EXPECT_EQ(count, 10 * rt.n_pes()); });
    EXPECT_EQ(counts.size(rt), kKeys);
  });
}

TEST_P(Maps, CountingSetsCountEachInsert) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto counts = CountingSet<std::uint64_t>::allocate(rt, "counts", kKeys);
    rt.launch(kLanes, [=] ESKER_LAMBDA(WorkItem item) {
      counts.insert(item, item.global_id() % kKeys);
      if (item.global_id() < kKeys) counts.insert(item, item.global_id(), 1000);
    });
    rt.barrier_all();
    EXPECT_EQ(counts.size(rt), kKeys);
    counts.for_each_local(rt, [&](std::uint64_t key, std::uint64_t count) {
      const std::uint64_t of_a_pe = kLanes / kKeys + (key < kLanes % kKeys ? 1 : 0) + 1000;
      EXPECT_EQ(count, rt.n_pes() * of_a_pe) << key;
    });
    rt.barrier_all();
  });
}

TEST_P(Maps, SetsHaveEachKeyOnce) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto set = Set<Point>::allocate(rt, "set", kKeys);
    rt.launch(kLanes,
              [=] ESKER_LAMBDA(WorkItem item) { set.insert(item, point_of(item.global_id() % kKeys)); });
    rt.barrier_all();
    EXPECT_EQ(set.size(rt), kKeys);
    std::uint64_t here = 0;
    set.for_each_local(rt, [&](const Point& key) { here += key.y == 7 * key.x && key.x < kKeys ? 1 : 0; });
    EXPECT_EQ(sum_over_pes(rt, here), kKeys);
  });
}

TEST_P(Maps, ComeBackFromAFile) {
  const TemporaryFile map_file("map");
  const TemporaryFile set_file("set");
  run_pes(GetParam(), [&](Runtime& rt) {
    const auto map = Map<Point, std::uint32_t>::allocate(rt, "map", kKeys);
    const auto insert = map.register_insert(rt);
    const auto counts = CountingSet<std::uint64_t>::allocate(rt, "counts", kKeys);
    rt.launch(kKeys, [=] ESKER_LAMBDA(WorkItem item) {
      insert(item, point_of(item.global_id()), static_cast<std::uint32_t>(item.global_id() + 5));
      counts.insert(item, item.global_id(), item.global_id() + 1);
    });
    rt.barrier_all();
    map.save(rt, map_file.name());
    counts.save(rt, set_file.name());
    const auto again = Map<Point, std::uint32_t>::load(rt, "again", map_file.name());
    EXPECT_EQ(again.size(rt), kKeys);
    again.for_each_local(rt, [](const Point& key, std::uint32_t value) { EXPECT_EQ(value, key.x + 5); });
    const auto counted = CountingSet<std::uint64_t>::load(rt, "counted", set_file.name());
    EXPECT_EQ(counted.size(rt), kKeys);
    counted.for_each_local(
        rt, [&](std::uint64_t key, std::uint64_t count) { EXPECT_EQ(count, rt.n_pes() * (key + 1)); });
    rt.barrier_all();
  });
}

/// What is said of a map made for `entries` that gets many more keys.
std::string overflow_of(const Way& way, std::uint64_t entries, std::uint64_t keys) {
  std::string message;
  Pes pes(way.n_pes, way.config);
  const auto failed = pes.run_and_catch([=](Runtime& rt) {
    const auto set = Set<std::uint64_t>::allocate(rt, "small", entries);
    const std::uint64_t share = keys / rt.n_pes();
    rt.launch(share, [=] ESKER_LAMBDA(WorkItem item) {
      set.insert(item, item.pe() * share + item.global_id());
      set.insert(item, item.pe() * share + item.global_id());
    });
    rt.barrier_all();
    set.size(rt);
  });
  for (const auto& failure : failed) {
    if (!failure) return "PEs differ";
    EXPECT_EQ(failure->kind, Error::Kind::kOutOfMemory);
    if (!message.empty()) {
      EXPECT_EQ(failure->message, message);
    }
    message = failure->message;
  }
  return message;
}

TEST_P(Maps, AFullOneSaysHowLargeItMustBe) {
  const std::uint64_t keys = 4000 / GetParam().n_pes * GetParam().n_pes;
  const std::string message = overflow_of(GetParam(), 100, keys);
  EXPECT_NE(message.find("set 'small' is full: it was made for 100 entries, holds "), std::string::npos)
      << message;
  const std::size_t at = message.find("make it for ");
  ASSERT_NE(at, std::string::npos) << message;
  const std::uint64_t needed = std::stoull(message.substr(at + 12));
  EXPECT_GE(needed, keys);
  EXPECT_LT(needed, 2 * keys);
  run_pes(GetParam(), [=](Runtime& rt) {  // and then it is large enough
    const auto set = Set<std::uint64_t>::allocate(rt, "large", needed);
    const std::uint64_t share = keys / rt.n_pes();
    rt.launch(share,
              [=] ESKER_LAMBDA(WorkItem item) { set.insert(item, item.pe() * share + item.global_id()); });
    rt.barrier_all();
    EXPECT_EQ(set.size(rt), keys);
  });
}

/// Each PE says it, from the keys that it has lost itself.
TEST_P(Maps, APartOfAFullOneSaysHowLargeAllMustBe) {
  const std::uint64_t keys = 4000 / GetParam().n_pes * GetParam().n_pes;
  Pes pes(GetParam().n_pes, GetParam().config);
  const auto failed = pes.run_and_catch([=](Runtime& rt) {
    const auto set = Set<std::uint64_t>::allocate(rt, "small", 100);
    const std::uint64_t share = keys / rt.n_pes();
    rt.launch(share,
              [=] ESKER_LAMBDA(WorkItem item) { set.insert(item, item.pe() * share + item.global_id()); });
    rt.barrier_all();
    std::string message;
    try {
      set.for_each_local(rt, [](std::uint64_t) {});
    } catch (const Error& error) {
      message = error.what();
    }
    const std::size_t at = message.find("make it for ");
    ASSERT_NE(at, std::string::npos) << message;
    const std::uint64_t needed = std::stoull(message.substr(at + 12));
    EXPECT_GT(needed, keys * 4 / 5) << message;  // an estimate, from a part
    EXPECT_LT(needed, 2 * keys) << message;
    rt.barrier_all();
  });
  for (const auto& failure : failed) EXPECT_FALSE(failure) << failure->message;
}

INSTANTIATE_TEST_SUITE_P(Pes, Maps, ::testing::ValuesIn(container_ways()));

#if !defined(ESKER_TEST_CUDA) && !defined(ESKER_TEST_HIP) && !defined(ESKER_TEST_SIMULATED)
using Numbers = Map<std::uint64_t, std::uint64_t>;
struct Asked {
  Found<std::uint64_t> value;
};

// Where the program calls, not on the PE that has the key.
TEST(MapsDeathTest, MisuseOfFindByTheProgramNamesTheCall) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto ask = [](const std::function<void(Runtime&, const Numbers&)>& body) {
    run_pes(1, [&](Runtime& rt) { body(rt, Numbers::allocate(rt, "numbers", 1)); });
  };
  EXPECT_DEATH(ask([](Runtime& rt, const Numbers& map) {
                 Found<std::uint64_t> elsewhere{};
                 map.register_find(rt)(rt, &elsewhere, 1);
                 rt.barrier_all();
               }),
               "Map::find: the reply's target of 16 bytes at heap offset .* is outside the symmetric");
  EXPECT_DEATH(ask([](Runtime& rt, const Numbers& map) {
                 const auto word = rt.heap().allocate<std::uint64_t>(1);
                 const auto find = map.register_find<std::uint64_t, Asked>(rt);
                 find(rt, then(Handler<std::uint64_t, Asked>{}, word.data(), Asked{}), 1);
                 rt.barrier_all();
               }),
               "Map::find: the Handler is a default one");
}
#endif

TEST(MapSize, ThatNoHeapHasIsRefused) {
  using Large = containers::Map<std::uint64_t, std::uint64_t>;
  // The fewest entries whose buckets take 2^64 bytes or more: their number of bytes would come round.
  std::uint64_t least = 1;
  for (std::uint64_t most = ~std::uint64_t{0}; least < most;) {
    const std::uint64_t middle = least + (most - least) / 2;
    const bool is_enough = containers::buckets_for(middle, 1, Large::kSlots) >= (std::uint64_t{1} << 52);
    (is_enough ? most : least) = is_enough ? middle : middle + 1;
  }
  run_pes(1, [=](Runtime& rt) {
    for (const std::uint64_t entries : {least, ~std::uint64_t{0}})
      EXPECT_THROW((Large::allocate(rt, "large", entries)), Error) << entries;
  });
}

TEST(MapSize, LeavesHardlyAnyBucketFull) {
  // As many keys as slots fit into one bucket, whoever hashes them.
  EXPECT_EQ(containers::buckets_for(0, 1, 128), 1u);
  EXPECT_EQ(containers::buckets_for(128, 1, 128), 1u);
  EXPECT_GT(containers::buckets_for(129, 1, 128), 1u);
  const auto fill = [](std::uint64_t entries, std::uint32_t slots) {
    return static_cast<double>(entries) /
           static_cast<double>(containers::buckets_for(entries, 1, slots) * slots);
  };
  EXPECT_GT(fill(1'000'000, 128), 0.5);
  EXPECT_LT(fill(1'000'000, 128), 0.6);
  EXPECT_GT(fill(1'000'000, 256), 0.6);
  EXPECT_LT(fill(1'000'000'000, 8), 0.1);
  EXPECT_GE(4 * containers::buckets_for(1'000'000, 4, 128), containers::buckets_for(1'000'000, 1, 128));
}

}  // namespace
}  // namespace esker::testing
