// Operations of the program on many elements of an array: against serial code, from host and device memory.
#define ESKER_CHECK_BOUNDS 1
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <esker/device.hpp>

#include "../runtime/seed.hpp"
#include "containers.hpp"

namespace esker::testing {
namespace {

using containers::Array;
using containers::Block;
using containers::Cyclic;

constexpr std::uint64_t kSize = 203;
constexpr std::uint64_t kCalls = kOnGpu ? 200 : 3000;  // of each PE, by one call

class ArrayOperations : public ::testing::TestWithParam<Way> {};

/// Where a call finds indices and values.
enum class Memory { kHost, kDevice, kHeap };

/// A list in memory of that kind, which lives as long as this.
template <class T>
class List {
 public:
  List(Runtime& rt, Memory memory, std::vector<T> values) : rt_{rt}, values_{std::move(values)} {
    if (memory == Memory::kDevice) {
      device_ = rt.device().memory<T>(values_.size());
      rt.device().copy(device_.data(), values_.data(), values_.size() * sizeof(T));
    }
    if (memory == Memory::kHeap) {
      heap_ = rt.heap().allocate<T>(values_.size());
      rt.heap().write(heap_, 0, std::span<const T>(values_));
    }
  }
  ~List() {
    if (heap_.size() > 0) rt_.heap().free(heap_);
  }
  List(const List&) = delete;
  List& operator=(const List&) = delete;

  std::span<const T> span() const {
    return heap_.size() > 0     ? std::span<const T>(heap_.data(), heap_.size())
           : device_.size() > 0 ? std::span<const T>(device_.data(), device_.size())
                                : std::span<const T>(values_);
  }

 private:
  Runtime& rt_;
  std::vector<T> values_;
  DeviceArray<T> device_;
  SymmetricArray<T> heap_;
};

/// What PE `pe` gives to a call: the same on every PE that asks. Indices come again and again.
std::vector<std::uint32_t> indices_of(std::uint64_t stream, std::uint32_t pe) {
  std::vector<std::uint32_t> indices(kCalls);
  for (std::uint64_t k = 0; k < kCalls; ++k)
    indices[k] = static_cast<std::uint32_t>(mix(mix(seed() + stream * 64 + pe) + k) % kSize);
  return indices;
}
template <class T>
std::vector<T> values_of(std::uint64_t stream, std::uint32_t pe) {
  std::vector<T> values(kCalls);
  for (std::uint64_t k = 0; k < kCalls; ++k)
    values[k] = static_cast<T>(mix(mix(seed() - stream * 64 - pe - 1) + k) % 4001);
  return values;
}

template <class T, class Distribution>
void expect_elements(Runtime& rt, const Array<T, Distribution>& array, const std::vector<T>& expected,
                     const char* what) {
  rt.barrier_all();
  std::uint64_t wrong = 0;
  array.for_each_local(rt, [&](std::uint64_t i, const T& value) { wrong += value != expected[i] ? 1 : 0; });
  EXPECT_EQ(wrong, 0u) << what;
  rt.barrier_all();
}

template <class T, class Distribution>
void check_updates(Runtime& rt, Memory indices_in, Memory values_in) {
  auto array = Array<T, Distribution>::allocate(rt, kSize);
  std::vector<T> expected(kSize, T{});
  const auto update = [&](const char* what, std::uint64_t stream, auto&& many, auto&& one) {
    {
      const List indices(rt, indices_in, indices_of(stream, rt.pe()));
      const List values(rt, values_in, values_of<T>(stream, rt.pe()));
      many(indices.span(), values.span());
      rt.barrier_all();
    }
    for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe) {
      const auto indices = indices_of(stream, pe);
      const auto values = values_of<T>(stream, pe);
      for (std::uint64_t k = 0; k < kCalls; ++k) one(expected[indices[k]], values[k]);
    }
    expect_elements(rt, array, expected, what);
  };
  update(
      "add", 1, [&](auto indices, auto values) { array.scatter_add(rt, indices, values); },
      [](T& element, T value) { element = static_cast<T>(element + value); });
  update(
      "max", 2, [&](auto indices, auto values) { array.scatter_max(rt, indices, values); },
      [](T& element, T value) { element = std::max(element, value); });
  update(
      "min", 3, [&](auto indices, auto values) { array.scatter_min(rt, indices, values); },
      [](T& element, T value) { element = std::min(element, value); });
  if constexpr (std::is_integral_v<T>) {
    update(
        "inc", 4, [&](auto indices, auto /*values*/) { array.scatter_inc(rt, indices); },
        [](T& element, T /*value*/) { ++element; });
  }
  array.free(rt);
}

TEST_P(ArrayOperations, UpdatesMatchASerialReference) {
  run_pes(GetParam(), [](Runtime& rt) {
    check_updates<std::uint64_t, Block>(rt, Memory::kHost, Memory::kHost);
    check_updates<std::int32_t, Cyclic>(rt, Memory::kHost, Memory::kHost);
    check_updates<double, Cyclic>(rt, Memory::kDevice, Memory::kDevice);
    check_updates<std::uint64_t, Block>(rt, Memory::kHeap, Memory::kHeap);
  });
}

TEST_P(ArrayOperations, IndicesAndValuesMayBeInDifferentMemory) {
  run_pes(GetParam(), [](Runtime& rt) {
    check_updates<std::uint64_t, Cyclic>(rt, Memory::kHost, Memory::kDevice);
    check_updates<std::uint32_t, Block>(rt, Memory::kHeap, Memory::kHost);
  });
}

/// Element i, of any bytes.
template <class T>
T element_of(std::uint64_t i) {
  T value{};
  const std::uint64_t bits[2] = {mix(seed() + i), mix(seed() - i)};
  static_assert(sizeof value <= sizeof bits);
  std::memcpy(&value, bits, sizeof value);
  return value;
}

template <class T, class Distribution>
void check_scatter_and_gather(Runtime& rt, Memory memory) {
  auto array = Array<T, Distribution>::allocate(rt, kSize);
  const auto results = rt.heap().allocate<T>(kCalls);
  std::vector<std::uint64_t> mine;  // a part of the indices, from the last on
  std::vector<T> values;
  for (std::uint64_t i = kSize; i-- > 0;) {
    if (i % rt.n_pes() != rt.pe()) continue;
    mine.push_back(i);
    values.push_back(element_of<T>(i));
  }
  // Lists in the heap have one size on every PE.
  const Memory put_from = memory == Memory::kHeap ? Memory::kHost : memory;
  const List indices_put(rt, put_from, mine);
  const List values_put(rt, put_from, values);
  array.scatter(rt, indices_put.span(), values_put.span());
  rt.barrier_all();
  const List indices(rt, memory, indices_of(5, rt.pe()));
  array.gather(rt, indices.span(), results);
  rt.quiet();
  const std::vector<T> got = rt.heap().read(results);
  const auto asked = indices_of(5, rt.pe());
  std::uint64_t wrong = 0;
  for (std::uint64_t k = 0; k < kCalls; ++k) {
    const T expected = element_of<T>(asked[k]);
    wrong += std::memcmp(&got[k], &expected, sizeof expected) != 0 ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0u) << sizeof(T) << " bytes";
  rt.barrier_all();
  rt.heap().free(results);
  array.free(rt);
}

TEST_P(ArrayOperations, WhatIsScatteredIsGathered) {
  run_pes(GetParam(), [](Runtime& rt) {
    check_scatter_and_gather<std::uint8_t, Block>(rt, Memory::kHost);
    check_scatter_and_gather<std::uint32_t, Cyclic>(rt, Memory::kHeap);
    check_scatter_and_gather<std::uint64_t, Cyclic>(rt, Memory::kDevice);
    check_scatter_and_gather<std::array<std::uint64_t, 2>, Block>(rt, Memory::kHost);
  });
}

void check_fetches(Runtime& rt, Memory memory) {
  auto array = Array<std::uint64_t, Cyclic>::allocate(rt, kSize);
  const auto results = rt.heap().allocate<std::uint64_t>(kCalls);
  const List indices(rt, memory, indices_of(8, rt.pe()));
  const List ones(rt, memory, std::vector<std::uint64_t>(kCalls, 1));
  array.gather_fetch_add(rt, indices.span(), ones.span(), results);
  rt.barrier_all();
  // Whoever comes first: the answers of an element that was asked for n times are 0, 1, ... n - 1.
  std::vector<std::uint64_t> times(kSize);
  for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe) {
    for (const std::uint32_t i : indices_of(8, pe)) ++times[i];
  }
  std::uint64_t expected = 0, answers = 0;
  for (const std::uint64_t n : times) expected += n * (n - 1) / 2;
  for (const std::uint64_t answer : rt.heap().read(results)) answers += answer;
  EXPECT_EQ(sum_over_pes(rt, answers), expected);
  expect_elements(rt, array, times, "fetch_add");
  rt.heap().free(results);
  array.free(rt);
}

TEST_P(ArrayOperations, FetchesBringWhatWasThere) {
  run_pes(GetParam(), [](Runtime& rt) {
    check_fetches(rt, Memory::kHost);
    check_fetches(rt, Memory::kDevice);
  });
}

TEST_P(ArrayOperations, SwapsBringWhatWasThere) {
  run_pes(GetParam(), [](Runtime& rt) {
    // Of each PE its own elements, so that it knows what was there.
    const auto array = Array<std::uint64_t, Block>::allocate(rt, kSize * rt.n_pes());
    const auto results = rt.heap().allocate<std::uint64_t>(kSize);
    std::vector<std::uint64_t> indices, first, odd, second;
    for (std::uint64_t k = 0; k < kSize; ++k) {
      indices.push_back(k * rt.n_pes() + rt.pe());
      first.push_back(k + 1);
      odd.push_back(k | 1);
      second.push_back(1000 + k);
    }
    array.gather_swap(rt, indices, first, results);
    rt.quiet();
    EXPECT_EQ(rt.heap().read(results), std::vector<std::uint64_t>(kSize, 0));
    array.gather_compare_swap(rt, indices, odd, second, results);
    rt.quiet();
    EXPECT_EQ(rt.heap().read(results), first);
    array.gather(rt, indices, results);
    rt.quiet();
    const auto now = rt.heap().read(results);
    for (std::uint64_t k = 0; k < kSize; ++k) ASSERT_EQ(now[k], k % 2 == 0 ? 1000 + k : k + 1) << k;
    rt.barrier_all();
  });
}

TEST_P(ArrayOperations, OnePeCallsWhileOthersWait) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto array = Array<std::uint64_t>::allocate(rt, kSize);
    const auto results = rt.heap().allocate<std::uint64_t>(kCalls);
    if (rt.pe() == rt.n_pes() - 1) {
      const std::vector<std::uint32_t> indices = indices_of(6, 0);
      array.scatter_add(rt, indices, std::vector<std::uint64_t>(kCalls, 3));
      rt.quiet();
      array.gather(rt, indices, results);
      rt.quiet();
      std::vector<std::uint64_t> expected(kSize);
      for (const std::uint32_t i : indices) expected[i] += 3;
      const auto got = rt.heap().read(results);
      for (std::uint64_t k = 0; k < kCalls; ++k) ASSERT_EQ(got[k], expected[indices[k]]) << k;
    }
    rt.barrier_all();
  });
}

struct Weighted {
  std::uint64_t value, weight;
  std::uint32_t times;
};

TEST_P(ArrayOperations, CallTheHandlerWithEachElement) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto array = Array<std::uint64_t, Cyclic>::allocate(rt, kSize);
    const auto weigh = rt.register_handler<std::uint64_t, Weighted>(
        "weigh", [] ESKER_LAMBDA(HandlerContext&, std::uint64_t & element, const Weighted& a) {
          element += a.times * a.value * a.weight;
        });
    const auto indices = indices_of(7, rt.pe());
    std::vector<Weighted> arguments;
    for (std::uint64_t k = 0; k < kCalls; ++k) arguments.push_back({k, rt.pe() + 1, 5});
    array.scatter_call(rt, weigh, indices, arguments);
    rt.barrier_all();
    std::vector<std::uint64_t> expected(kSize);
    for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe) {
      const auto of_pe = indices_of(7, pe);
      for (std::uint64_t k = 0; k < kCalls; ++k) expected[of_pe[k]] += 5 * k * (pe + 1);
    }
    expect_elements(rt, array, expected, "call");
  });
}

TEST_P(ArrayOperations, NoIndicesAreNoMessages) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto array = Array<std::uint64_t>::allocate(rt, kSize);
    const std::vector<std::uint64_t> none;
    const std::span<std::uint64_t> nowhere;
    array.scatter(rt, none, none);
    array.scatter_inc(rt, none);
    array.gather(rt, none, nowhere);
    rt.barrier_all();
    EXPECT_EQ(rt.statistics().messages_published, 0u);
  });
}

INSTANTIATE_TEST_SUITE_P(Pes, ArrayOperations, ::testing::ValuesIn(container_ways()));

#if !defined(ESKER_TEST_CUDA) && !defined(ESKER_TEST_HIP) && !defined(ESKER_TEST_SIMULATED)
void misuse_on_one_pe(const std::function<void(Runtime&, Array<std::uint64_t>)>& body) {
  run_pes(1, [&](Runtime& rt) { body(rt, Array<std::uint64_t>::allocate(rt, 10)); });
}

TEST(ArrayOperationsDeathTest, MisuseNamesTheCallAndTheValues) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  using Values = std::vector<std::uint64_t>;
  EXPECT_DEATH(misuse_on_one_pe([](Runtime& rt, auto array) {
                 array.scatter_add(rt, Values{1, 10, 2}, Values{1, 1, 1});
               }),
               "Array::scatter_add: index 10, at position 1 of 3, of an array of 10 elements");
  EXPECT_DEATH(misuse_on_one_pe([](Runtime& rt, auto array) {
                 array.scatter_inc(rt, std::array{0, -1});
               }),
               "Array::scatter_inc: index -1, at position 1 of 2, of an array of 10 elements");
  EXPECT_DEATH(misuse_on_one_pe([](Runtime& rt, auto array) {
                 array.scatter(rt, Values{1, 2, 3}, Values{1, 2});
               }),
               "Array::scatter: 3 indices and 2 values: there must be as many of both");
  EXPECT_DEATH(misuse_on_one_pe([](Runtime& rt, auto array) {
                 Values elsewhere(2);
                 array.gather(rt, Values{1, 2}, elsewhere);
               }),
               "Array::gather: a range of results of 16 bytes at heap offset .* is outside the symmetric");
  EXPECT_DEATH(misuse_on_one_pe([](Runtime& rt, auto array) {
                 array.scatter_call(rt, Handler<std::uint64_t, int>{}, Values{1}, std::array{1});
               }),
               "Array::scatter_call: the Handler is a default one");
}
#endif

}  // namespace
}  // namespace esker::testing
