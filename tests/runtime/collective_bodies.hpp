// What every PE does in tests of collective calls: over loopback, whose PEs are threads, and under mpirun.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <esker/collectives.hpp>
#include <esker/esker.hpp>

namespace esker::testing {

#if defined(ESKER_TEST_SANITIZED)
inline constexpr std::uint64_t kRatio =
    8;  // of the large cases, which still take several rounds where marked
#else
inline constexpr std::uint64_t kRatio = 1;
#endif

/// Collective calls are to move this as they move numbers.
struct Point {
  float x, y;
  std::uint32_t n;
  friend bool operator==(const Point&, const Point&) = default;
};

inline std::uint64_t scrambled(std::uint64_t x) {
  x = (x + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}
template <class T>
T value_of(std::uint64_t pe, std::uint64_t i) {
  const std::uint64_t x = scrambled(pe * 1'000'003 + i);
  if constexpr (std::is_same_v<T, Point>)
    return {static_cast<float>(x % 1000), static_cast<float>(pe), static_cast<std::uint32_t>(i)};
  else
    return static_cast<T>(x % 100);
}
template <class T>
std::vector<T> values_of(std::uint64_t pe, std::uint64_t n) {
  std::vector<T> values(n);
  for (std::uint64_t i = 0; i < n; ++i) values[i] = value_of<T>(pe, i);
  return values;
}

/// None, what comes along with the agreement, what does not, and what takes several rounds of bytes.
inline std::vector<std::uint64_t> sizes(std::uint64_t element_bytes, std::uint64_t rounds_bytes) {
  std::vector<std::uint64_t> all{0, 1, 32 / element_bytes, 32 / element_bytes + 1, 1000};
  if (kRatio == 1 || element_bytes == 8) all.push_back(rounds_bytes / element_bytes + 3);
  return all;
}

template <class T>
void check_broadcast(Runtime& rt) {
  for (const std::uint64_t n : sizes(sizeof(T), std::uint64_t{9} << 20)) {
    const auto root = static_cast<std::uint32_t>(n % rt.n_pes());
    std::vector<T> values = values_of<T>(rt.pe(), n);
    broadcast(rt, values, root);
    ASSERT_EQ(values, values_of<T>(root, n)) << n;
  }
  EXPECT_EQ(broadcast(rt, value_of<T>(rt.pe(), 5), rt.n_pes() - 1), value_of<T>(rt.n_pes() - 1, 5));
}
inline void broadcasts(Runtime& rt) {
  check_broadcast<std::uint64_t>(rt);
  check_broadcast<std::int8_t>(rt);
  check_broadcast<Point>(rt);
}

template <class T>
void check_gathers(Runtime& rt) {
  const std::uint32_t n_pes = rt.n_pes();
  for (const std::uint64_t n : sizes(sizeof(T), (std::uint64_t{8} << 20) / n_pes)) {
    const auto root = static_cast<std::uint32_t>(n % n_pes);
    std::vector<T> all;
    for (std::uint32_t pe = 0; pe < n_pes; ++pe) {
      const std::vector<T> values = values_of<T>(pe, n);
      all.insert(all.end(), values.begin(), values.end());
    }
    const std::vector<T> mine = values_of<T>(rt.pe(), n);
    std::vector<T> got(n * n_pes);
    all_gather(rt, mine, got);
    ASSERT_EQ(got, all) << n;
    got.assign(rt.pe() == root ? n * n_pes : 0, T{});
    gather(rt, mine, got, root);
    ASSERT_EQ(got, rt.pe() == root ? all : std::vector<T>{}) << n;
    std::vector<T> part(n);
    scatter(rt, got, part, root);
    ASSERT_EQ(part, mine) << n;
  }
  std::vector<T> ones;
  for (std::uint32_t pe = 0; pe < n_pes; ++pe) ones.push_back(value_of<T>(pe, 7));
  EXPECT_EQ(all_gather(rt, value_of<T>(rt.pe(), 7)), ones);
  EXPECT_EQ(gather(rt, value_of<T>(rt.pe(), 7), n_pes - 1), rt.pe() == n_pes - 1 ? ones : std::vector<T>{});
}
inline void gathers(Runtime& rt) {
  check_gathers<std::uint16_t>(rt);
  check_gathers<double>(rt);
  check_gathers<Point>(rt);
}

/// Reduce, all_reduce and exclusive_scan against a loop over the PEs, bit for bit.
template <class T, class Operation, class Function>
void check_reductions(Runtime& rt, const Operation& operation, Function function, T initial,
                      const std::vector<std::uint64_t>& all_sizes) {
  for (const std::uint64_t n : all_sizes) {
    std::vector<T> sum, before(n, initial);
    for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe) {
      const std::vector<T> values = values_of<T>(pe, n);
      if (pe == rt.pe() && pe > 0) {
        for (std::uint64_t i = 0; i < n; ++i) before[i] = static_cast<T>(function(initial, sum[i]));
      }
      if (pe == 0) sum = values;
      for (std::uint64_t i = 0; pe > 0 && i < n; ++i) sum[i] = static_cast<T>(function(sum[i], values[i]));
    }
    const auto root = static_cast<std::uint32_t>(n % rt.n_pes());
    const std::vector<T> mine = values_of<T>(rt.pe(), n);
    std::vector<T> values = mine;
    reduce(rt, values, operation, root);
    ASSERT_EQ(values, rt.pe() == root ? sum : mine) << n;
    values = mine;
    all_reduce(rt, values, operation);
    ASSERT_EQ(values, sum) << n;
    values = mine;
    exclusive_scan(rt, values, initial, operation);
    ASSERT_EQ(values, before) << n;
  }
}

/// x -> a * x + b: to do one after the other is associative and not commutative.
struct Affine {
  std::uint32_t a, b;
  friend bool operator==(const Affine&, const Affine&) = default;
};
template <>
inline Affine value_of<Affine>(std::uint64_t pe, std::uint64_t i) {
  const std::uint64_t x = scrambled(pe * 1'000'003 + i);
  return {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(x >> 32)};
}
inline constexpr auto kThen = [](const Affine& first, const Affine& second) {
  return Affine{second.a * first.a, second.a * first.b + second.b};
};

template <class T>
void check_numbers(Runtime& rt, const std::vector<std::uint64_t>& all_sizes) {
  check_reductions<T>(rt, Reduction::kSum, std::plus<>{}, T{1}, all_sizes);
  check_reductions<T>(rt, Reduction::kMax, [](T a, T b) { return std::max(a, b); }, T{0}, {1, 5});
  check_reductions<T>(rt, Reduction::kMin, [](T a, T b) { return std::min(a, b); }, T{100}, {1, 5});
  // Products of these values overflow ints, which is undefined.
  if constexpr (!std::is_same_v<T, std::int32_t>)
    check_reductions<T>(rt, Reduction::kProduct, std::multiplies<>{}, T{1}, {3});
  if constexpr (std::is_integral_v<T>) {
    check_reductions<T>(rt, Reduction::kAnd, std::bit_and<>{}, static_cast<T>(~T{0}), {3});
    check_reductions<T>(rt, Reduction::kOr, std::bit_or<>{}, T{0}, {3});
    check_reductions<T>(rt, Reduction::kXor, std::bit_xor<>{}, T{0}, {3});
  }
}
inline void reductions(Runtime& rt) {
  // Few enough to come along, to be gathered whole, a slice a PE, and some rounds of slices.
  check_numbers<std::uint64_t>(rt, {0, 1, 4, 5, 900, 9001, 700'000 / kRatio});
  check_numbers<double>(rt, {1, 5, 20'001});
  check_numbers<std::int8_t>(rt, {1, 32, 33, 70'001});
  check_numbers<std::int16_t>(rt, {3});
  check_numbers<std::int32_t>(rt, {3});
  check_numbers<float>(rt, {3, 20'002});
  check_numbers<long double>(rt, {1, 3});
  check_numbers<char>(rt, {3});
  check_reductions<Affine>(rt, kThen, kThen, Affine{3, 4}, {0, 1, 4, 5, 1000, 30'001});
  EXPECT_EQ(all_reduce(rt, rt.pe() + 1u, Reduction::kSum), rt.n_pes() * (rt.n_pes() + 1) / 2);
  EXPECT_EQ(all_reduce(rt, rt.pe() == 0, std::logical_and<>{}), rt.n_pes() == 1);
  EXPECT_EQ(reduce(rt, 1, std::plus<>{}, rt.n_pes() - 1), rt.pe() == rt.n_pes() - 1 ? int(rt.n_pes()) : 1);
  EXPECT_EQ(exclusive_scan(rt, std::uint64_t{2}, 0, std::plus<>{}), 2 * rt.pe());
}

/// counts(from, to) values of one PE for another.
template <class T, class Counts>
void check_all_to_all(Runtime& rt, Counts counts) {
  std::vector<std::uint64_t> to(rt.n_pes()), from(rt.n_pes());
  std::vector<T> values, expected;
  const auto add = [](std::vector<T>* all, std::uint32_t sender, std::uint32_t receiver, std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) all->push_back(value_of<T>(sender * 64 + receiver, i));
  };
  for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe) {
    to[pe] = static_cast<std::uint64_t>(counts(rt.pe(), pe));
    from[pe] = static_cast<std::uint64_t>(counts(pe, rt.pe()));
    add(&values, rt.pe(), pe, to[pe]);
    add(&expected, pe, rt.pe(), from[pe]);
  }
  const Received<T> received = all_to_all(rt, values, to);
  ASSERT_EQ(received.counts, from);
  ASSERT_EQ(received.values, expected);
  std::vector<T> into(expected.size() + 5, value_of<T>(9, 9));
  ASSERT_EQ(all_to_all(rt, values, to, into), from);
  ASSERT_TRUE(std::equal(expected.begin(), expected.end(), into.begin()));
  ASSERT_EQ(into.back(), value_of<T>(9, 9)) << "what is behind the values has changed";
}
inline void all_to_alls(Runtime& rt) {
  const std::uint32_t n_pes = rt.n_pes();
  check_all_to_all<std::uint64_t>(rt, [](auto, auto) { return 0; });
  check_all_to_all<std::uint64_t>(rt, [](auto, auto) { return 1; });
  check_all_to_all<Point>(rt, [](auto a, auto b) { return scrambled(a * 100 + b) % 300; });
  check_all_to_all<std::uint8_t>(rt, [](auto, auto to) { return to == 0 ? 10'000 : 0; });
  check_all_to_all<std::uint32_t>(rt, [](auto from, auto) { return from == 0 ? 10'000 : 0; });
  // More than a round holds, for some.
  const std::uint64_t more = (std::uint64_t{8} << 20) / n_pes / 8 * 2 + 11;
  check_all_to_all<std::uint64_t>(rt, [&](auto a, auto b) { return (a + 1) % n_pes == b ? more : a + b; });
}

/// The sort's result, by itself, against its neighbours', and against what was given.
template <class T>
void check_sort(Runtime& rt, const std::vector<T>& keys) {
  using Bits = std::array<std::byte, sizeof(T)>;
  const auto hash = [](const T& key) {
    std::uint64_t sum = 0;
    if constexpr (std::is_same_v<T, long double>) {
      sum = scrambled(std::hash<double>{}(static_cast<double>(key)));
    } else {
      Bits bits;
      std::memcpy(bits.data(), &key, sizeof key);
      for (const std::byte byte : bits) sum = scrambled(sum + static_cast<std::uint64_t>(byte));
    }
    return sum;
  };
  const auto sum_of = [&](const std::vector<T>& all) {
    std::uint64_t sum = 0;
    for (const T& key : all) sum += hash(key);
    return all_reduce(rt, sum, Reduction::kSum);
  };
  const std::uint64_t total = all_reduce(rt, std::uint64_t{keys.size()}, Reduction::kSum);
  const std::uint64_t sum = sum_of(keys);
  const std::vector<T> sorted = sort(rt, keys);
  const std::uint64_t first = rt.pe() * total / rt.n_pes();
  const std::uint64_t last = (rt.pe() + 1) * total / rt.n_pes();
  ASSERT_EQ(sorted.size(), last - first);
  const auto less = [](const T& a, const T& b) {
    if constexpr (std::is_floating_point_v<T>)
      return std::isnan(b) ? !std::isnan(a) : a < b || (a == b && std::signbit(a) && !std::signbit(b));
    else
      return a < b;
  };
  ASSERT_TRUE(std::is_sorted(sorted.begin(), sorted.end(), less));
  ASSERT_EQ(sum_of(sorted), sum) << "keys are lost, or made";
  struct Ends {
    std::uint64_t n;
    T first, last;
  };
  Ends mine{sorted.size(), T{}, T{}};
  if (!sorted.empty()) mine = {sorted.size(), sorted.front(), sorted.back()};
  std::vector<Ends> ends = all_gather(rt, mine);
  std::erase_if(ends, [](const Ends& pe) { return pe.n == 0; });
  for (std::size_t i = 1; i < ends.size(); ++i) ASSERT_FALSE(less(ends[i].first, ends[i - 1].last));
}

/// Keys of every kind of distribution, some PEs with more than others.
template <class T>
void check_sorts(Runtime& rt, std::uint64_t most) {
  const std::uint64_t pe = rt.pe();
  const std::uint64_t n = most / (pe + 1);
  const auto make = [](std::uint64_t count, auto key) {
    std::vector<T> keys(count);
    for (std::uint64_t i = 0; i < count; ++i) keys[i] = static_cast<T>(key(i));
    return keys;
  };
  const auto random = [&](std::uint64_t i) {
    const std::uint64_t x = scrambled(pe * 10'000'019 + i);
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(static_cast<double>(static_cast<std::int64_t>(x)) * 1e-3);
    else
      return x;
  };
  check_sort<T>(rt, make(n, random));
  check_sort<T>(rt, make(n, [](auto) { return 7; }));                                // one key
  check_sort<T>(rt, make(n, [&](auto i) { return scrambled(pe * 7919 + i) % 3; }));  // few
  check_sort<T>(rt, make(n, [&](auto i) { return i; }));                             // in order
  check_sort<T>(rt, make(n, [&](auto i) { return 100 - i - pe; }));                  // the other way
  check_sort<T>(rt, make(pe + 1 == rt.n_pes() ? n : 0, random));                     // on one PE
  check_sort<T>(rt, make(pe == 0 ? 2 : 0, random));                                  // fewer than PEs
  check_sort<T>(rt, {});
  check_sort<T>(rt, make(n, [&](auto i) {  // the ends of the range
                  return i % 2 == 0 ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
                }));
}
inline void sorts_of_small_keys(Runtime& rt) {
  check_sorts<std::uint8_t>(rt, 3000);
  check_sorts<char>(rt, 3000);
  check_sorts<std::int16_t>(rt, 3000);
  check_sorts<std::uint32_t>(rt, 3000);
}
inline void sorts_of_large_keys(Runtime& rt) {
  check_sorts<std::uint64_t>(rt, 200'000 / kRatio);
  check_sorts<long long>(rt, 3000);
}
inline void sorts_of_real_keys(Runtime& rt) {
  check_sorts<float>(rt, 3000);
  check_sorts<double>(rt, 3000);
  check_sorts<long double>(rt, 1000);
  // What std::sort may not be given.
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  check_sort<double>(rt, {nan, 0.0, -0.0, infinity, -infinity, static_cast<double>(rt.pe()), nan});
  check_sort<double>(rt, std::vector<double>(rt.pe(), nan));
}
inline void sorts_of_a_range(Runtime& rt) {
  const std::array<std::int32_t, 3> keys{5, -static_cast<std::int32_t>(rt.pe()), 2};
  EXPECT_EQ(sort(rt, keys).size(), 3u);
  EXPECT_EQ(keys[0], 5);
}

/// The heap is a GPU's memory where lanes run there.
inline void heap_memory(Runtime& rt) {
  constexpr std::uint64_t kN = 3000;
  const std::uint32_t n_pes = rt.n_pes();
  const auto mine = rt.heap().allocate<std::uint64_t>(kN);
  const auto all = rt.heap().allocate<std::uint64_t>(kN * n_pes);
  const std::uint32_t pe = rt.pe();
  // Not waited for: a collective call that reads the heap does that.
  rt.launch(kN, [=] ESKER_LAMBDA(Lane lane) { mine[lane.global_id()] = lane.global_id() * 3 + pe; });
  all_gather(rt, mine, all);
  std::vector<std::uint64_t> got = rt.heap().read(all);
  for (std::uint64_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], i % kN * 3 + i / kN);
  all_reduce(rt, mine, Reduction::kSum);
  got = rt.heap().read(mine);
  for (std::uint64_t i = 0; i < kN; ++i) ASSERT_EQ(got[i], n_pes * i * 3 + n_pes * (n_pes - 1) / 2);
  broadcast(rt, std::span(mine.data(), 2), n_pes - 1);
  scatter(rt, all, mine, 0);
  EXPECT_EQ(rt.heap().read(mine)[1], 3 + rt.pe());
  std::vector<std::uint64_t> counts(n_pes, 0);
  counts[(pe + 1) % n_pes] = kN;
  EXPECT_EQ(all_to_all(rt, mine, counts, all)[(pe + n_pes - 1) % n_pes], kN);
  EXPECT_EQ(rt.heap().read(all)[1], 3 + (pe + n_pes - 1) % n_pes);
  const std::vector<std::uint64_t> sorted = sort(rt, mine);
  EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.end()));
  EXPECT_EQ(sorted.size(), kN);
  rt.heap().free(all);
  rt.heap().free(mine);
}

/// A PE in a collective call applies what others wait for.
inline void messages_go_on(Runtime& rt) {
  const auto words = rt.heap().allocate<std::uint64_t>(1);
  const std::uint32_t n_pes = rt.n_pes();
  constexpr std::uint64_t kLanes = 5000;
  for (int round = 0; round < 3; ++round) {
    // Only PE 0 sends; it comes to the call when the others, which wait in it, have applied everything.
    if (rt.pe() == 0) {
      rt.launch(kLanes, [=] ESKER_LAMBDA(WorkItem item) {
        shmem_inc(item, &words[0], static_cast<std::uint32_t>(item.global_id() % n_pes));
      });
      rt.quiet();
    }
    sync_all(rt);
    std::vector<std::uint64_t> counts(n_pes * 3000);
    broadcast(rt, counts);
    const std::uint64_t mine = (kLanes + n_pes - 1 - rt.pe()) / n_pes;
    EXPECT_EQ(rt.heap().read(words)[0], mine * static_cast<std::uint64_t>(round + 1));
    sync_all(rt);
  }
  rt.barrier_all();
  rt.heap().free(words);
}

struct CollectiveCase {
  const char* name;
  void (*body)(Runtime&);
  friend void PrintTo(const CollectiveCase& it, std::ostream* out) { *out << it.name; }
};
inline const CollectiveCase kCollectiveCases[] = {
    {"Broadcast", broadcasts},
    {"Gather", gathers},
    {"Reduce", reductions},
    {"AllToAll", all_to_alls},
    {"SortSmallKeys", sorts_of_small_keys},
    {"SortLargeKeys", sorts_of_large_keys},
    {"SortRealKeys", sorts_of_real_keys},
    {"SortRange", sorts_of_a_range},
    {"HeapMemory", heap_memory},
    {"MessagesGoOn", messages_go_on},
};

// --- PEs that do not mean the same.

struct Mismatch {
  const char* name;
  void (*body)(Runtime&);
  std::vector<std::string> parts;  // of the message, on every PE
  friend void PrintTo(const Mismatch& it, std::ostream* out) { *out << it.name; }
};

inline bool is_last(Runtime& rt) { return rt.pe() == rt.n_pes() - 1; }

/// For two PEs or more; "LAST" stands for the last one.
inline const Mismatch kMismatches[] = {
    {"OtherCall",
     [](Runtime& rt) {
       std::vector<int> v(100);
       if (is_last(rt))
         broadcast(rt, v);
       else
         sync_all(rt);
     },
     {"broadcast", "sync_all", "LAST"}},
    {"CallAndBarrier",
     [](Runtime& rt) {
       if (is_last(rt))
         rt.barrier_all();
       else
         sort(rt, std::vector<int>(10));
     },
     {"barrier_all", "sort", "LAST"}},
    {"GatherAndAllGather",
     [](Runtime& rt) {
       if (is_last(rt))
         all_gather(rt, 1);
       else
         gather(rt, 1);
     },
     {" gather ", "all_gather", "LAST"}},
    {"Count",
     [](Runtime& rt) {
       std::vector<int> v(is_last(rt) ? 8 : 7);
       all_reduce(rt, v, Reduction::kSum);
     },
     {"all_reduce: LAST asks for the sum of 8 32-bit signed integers",
      "PE 0 for the sum of 7 32-bit signed integers"}},
    {"CountOfMany",
     [](Runtime& rt) {
       std::vector<double> v(is_last(rt) ? 200'000 : 300'000);
       broadcast(rt, v);
     },
     {"broadcast: LAST asks for 200000 doubles, root 0", "PE 0 for 300000 doubles"}},
    {"FewAndMany",
     [](Runtime& rt) {
       std::vector<char> v(is_last(rt) ? 1 : 300'000);
       broadcast(rt, v);
     },
     {"LAST asks for 1 8-bit signed integers", "PE 0 for 300000"}},
    {"Type",
     [](Runtime& rt) {
       if (is_last(rt))
         broadcast(rt, 1.0f);
       else
         broadcast(rt, 1);
     },
     {"LAST asks for 1 floats", "PE 0 for 1 32-bit signed integers"}},
    {"TypeOfStruct",
     [](Runtime& rt) {
       if (is_last(rt))
         broadcast(rt, Point{});
       else
         broadcast(rt, Affine{});
     },
     {"Point", "Affine", "LAST"}},
    {"Reduction",
     [](Runtime& rt) { all_reduce(rt, 1.5, is_last(rt) ? Reduction::kMax : Reduction::kProduct); },
     {"LAST asks for the maximum of 1 doubles", "PE 0 for the product of 1 doubles"}},
    {"Operation",
     [](Runtime& rt) {
       if (is_last(rt))
         all_reduce(rt, 1, std::multiplies<>{});
       else
         all_reduce(rt, 1, [](int a, int b) { return a + b; });
     },
     {"the operation std::multiplies<", "lambda", "LAST"}},
    {"Root",
     [](Runtime& rt) { broadcast(rt, 1, is_last(rt) ? 1 : 0); },
     {"LAST asks for 1 32-bit signed integers, root 1", "PE 0 for 1 32-bit signed integers, root 0"}},
    {"NoSuchRoot", [](Runtime& rt) { broadcast(rt, 1, 99); }, {"broadcast: PE 0", "the root is 99"}},
    {"NoSuchReduction",
     [](Runtime& rt) { all_reduce(rt, 1.5, Reduction::kXor); },
     {"all_reduce: PE 0", "no such reduction of doubles"}},
    {"RoomAtTheRoot",
     [](Runtime& rt) {
       std::vector<int> mine(3), all(rt.pe() == 1 ? 4 : 0);
       gather(rt, mine, all, 1);
     },
     {"gather: PE 1", "room for 4 elements", "give 3 each"}},
    {"RoomOnOnePe",
     [](Runtime& rt) {
       std::vector<int> mine(30), all(30 * rt.n_pes() + (is_last(rt) ? 1 : 0));
       all_gather(rt, mine, all);
     },
     {"all_gather: LAST", "elements, and", "give 30 each"}},
    {"ScatterTooFew",
     [](Runtime& rt) {
       std::vector<int> all(rt.pe() == 0 ? 5 : 0), mine(3);
       scatter(rt, all, mine);
     },
     {"scatter: PE 0", "the root has 5 elements", "get 3 each"}},
    {"NumberOfCounts",
     [](Runtime& rt) {
       all_to_all(rt, std::vector<int>{}, std::vector<std::uint64_t>(rt.n_pes() + (is_last(rt) ? 1 : 0)));
     },
     {"all_to_all: LAST", "counts"}},
    {"SumOfCounts",
     [](Runtime& rt) {
       std::vector<std::uint64_t> counts(rt.n_pes(), 1);
       if (is_last(rt)) counts[0] = std::numeric_limits<std::uint64_t>::max();
       all_to_all(rt, std::vector<int>(rt.n_pes()), counts);
     },
     {"all_to_all: LAST", "come to more elements"}},
    {"RoomForWhatArrives",
     [](Runtime& rt) {
       std::vector<int> into(is_last(rt) ? rt.n_pes() - 1 : 100);
       all_to_all(rt, std::vector<int>(rt.n_pes()), std::vector<std::uint64_t>(rt.n_pes(), 1), into);
     },
     {"all_to_all: LAST", "for which the result has no room"}},
    {"KeysOfOtherTypes",
     [](Runtime& rt) {
       if (is_last(rt))
         sort(rt, std::vector<int>(10));
       else
         sort(rt, std::vector<unsigned>(10));
     },
     {"sort: LAST asks for 32-bit signed integers", "PE 0 for 32-bit unsigned integers"}},
};

/// Collective. The call fails on every PE in words that have all parts, and the next one is as if it had not
/// been.
inline void check_mismatch(Runtime& rt, const Mismatch& mismatch, const std::string& last) {
  try {
    mismatch.body(rt);
    ADD_FAILURE() << mismatch.name << ": no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kContract);
    const std::string text = error.what();
    for (std::string part : mismatch.parts) {
      if (const std::size_t at = part.find("LAST"); at != std::string::npos) part.replace(at, 4, last);
      EXPECT_NE(text.find(part), std::string::npos)
          << mismatch.name << ": '" << part << "' is not in: " << text;
    }
  }
  EXPECT_EQ(all_reduce(rt, 1u, Reduction::kSum), rt.n_pes());
}

}  // namespace esker::testing
