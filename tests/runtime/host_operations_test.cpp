// What the program itself sends and asks for, over loopback, wherever the heap stands.
#include <array>
#include <numeric>
#include <vector>

#include "pes.hpp"
#include "updates.hpp"

namespace esker::testing {
namespace {

constexpr std::uint64_t kWords = 37;
constexpr std::uint64_t kCalls = kOnGpu ? 60 : 400;

std::vector<Way> ways() {
  if (kOnGpu) return gpu_ways();
  std::vector<Way> all;
  for (const std::uint32_t n : {1u, 2u, 3u, 4u, 8u}) all.push_back(way("plain", n, [](Config&) {}));
  all.push_back(way("helpers", 2, [](Config& config) { config.apply_helpers = 2; }));
  return all;
}

class HostOperations : public ::testing::TestWithParam<Way> {};

template <class T>
void update_from_host(Runtime& rt, Update update, T* at, T value, std::uint32_t pe) {
  if (update == Update::kMin) rt.min(at, value, pe);
  if (update == Update::kMax) rt.max(at, value, pe);
  if (update == Update::kAdd) rt.add(at, value, pe);
  if constexpr (std::is_integral_v<T>) {
    if (update == Update::kInc) rt.inc(at, pe);
    if (update == Update::kAnd) rt.bit_and(at, value, pe);
    if (update == Update::kOr) rt.bit_or(at, value, pe);
    if (update == Update::kXor) rt.bit_xor(at, value, pe);
  }
}

template <class T>
void check_host_updates(Runtime& rt, Update update, T initial) {
  const std::uint64_t stream = seed() + static_cast<std::uint64_t>(update) * 16 + sizeof(T);
  const auto array = rt.heap().allocate<T>(kWords);
  std::vector<T> expected(kWords, initial);
  rt.heap().write(array, 0, std::span<const T>(expected));
  rt.barrier_all();
  for (std::uint64_t k = 0; k < kCalls; ++k) {
    const Draw d = draw(stream, rt.pe(), k, rt.n_pes(), kWords);
    update_from_host(rt, update, &array[d.index], operand_of<T>(update, d.bits), d.pe);
  }
  rt.barrier_all();
  for (std::uint32_t sender = 0; sender < rt.n_pes(); ++sender) {
    for (std::uint64_t k = 0; k < kCalls; ++k) {
      const Draw d = draw(stream, sender, k, rt.n_pes(), kWords);
      if (d.pe != rt.pe()) continue;
      expected[d.index] = updated(update, expected[d.index], operand_of<T>(update, d.bits));
    }
  }
  EXPECT_EQ(rt.heap().read(array), expected) << "update " << static_cast<int>(update);
  rt.heap().free(array);
}

TEST_P(HostOperations, UpdatesMatchASerialReference) {
  run_pes(GetParam(), [](Runtime& rt) {
    for (const Update update :
         {Update::kMin, Update::kMax, Update::kAdd, Update::kInc, Update::kAnd, Update::kOr, Update::kXor}) {
      check_host_updates<std::uint32_t>(rt, update, 7);
      check_host_updates<std::int64_t>(rt, update, -9);
    }
    check_host_updates<double>(rt, Update::kAdd, 0.5);
    check_host_updates<float>(rt, Update::kMin, 3);
  });
}

template <class T>
void check_host_puts(Runtime& rt) {
  const std::uint64_t stream = seed() + sizeof(T);
  const auto array = rt.heap().allocate<T>(kCalls * rt.n_pes());
  const auto back = rt.heap().allocate<T>(kCalls * rt.n_pes());
  for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe) {
    for (std::uint64_t k = 0; k < kCalls; ++k)
      rt.put(&array[rt.pe() * kCalls + k], value_put<T>(stream + pe, rt.pe(), k), pe);
  }
  rt.quiet();  // they stand at every PE now, whatever that is doing
  for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe) {
    for (std::uint64_t k = 0; k < kCalls; ++k)
      rt.get(&back[pe * kCalls + k], &array[rt.pe() * kCalls + k], pe);
  }
  rt.quiet();
  const std::vector<T> got = rt.heap().read(back);
  std::uint64_t wrong = 0;
  for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe) {
    for (std::uint64_t k = 0; k < kCalls; ++k) {
      const T expected = value_put<T>(stream + pe, rt.pe(), k);
      wrong += std::memcmp(&got[pe * kCalls + k], &expected, sizeof expected) != 0 ? 1 : 0;
    }
  }
  EXPECT_EQ(wrong, 0u) << sizeof(T) << " bytes";
  rt.barrier_all();
  rt.heap().free(back);
  rt.heap().free(array);
}

TEST_P(HostOperations, WhatHasBeenPutIsGotAfterQuiet) {
  run_pes(GetParam(), [](Runtime& rt) {
    check_host_puts<std::uint8_t>(rt);
    check_host_puts<std::uint16_t>(rt);
    check_host_puts<std::uint32_t>(rt);
    check_host_puts<std::uint64_t>(rt);
    check_host_puts<std::array<std::uint64_t, 2>>(rt);
  });
}

TEST_P(HostOperations, FetchesBringWhatWasThere) {
  run_pes(GetParam(), [](Runtime& rt) {
    const std::uint32_t next = (rt.pe() + 1) % rt.n_pes();
    const auto word = rt.heap().allocate<std::uint64_t>(1);
    const auto results = rt.heap().allocate<std::uint64_t>(7);
    const auto ask = [&](auto&& one) {
      one();
      rt.quiet();  // one after the other
    };
    ask([&] { rt.fetch_inc(&results[0], &word[0], next); });
    ask([&] { rt.fetch_add(&results[1], &word[0], 6, next); });
    ask([&] { rt.fetch_or(&results[2], &word[0], 8, next); });
    ask([&] { rt.fetch_and(&results[3], &word[0], 12, next); });
    ask([&] { rt.fetch_xor(&results[4], &word[0], 1, next); });
    ask([&] { rt.swap(&results[5], &word[0], 50, next); });
    ask([&] { rt.compare_swap(&results[6], &word[0], 50, 60, next); });
    EXPECT_EQ(rt.heap().read(results), (std::vector<std::uint64_t>{0, 1, 7, 15, 12, 13, 50}));
    rt.barrier_all();
    EXPECT_EQ(rt.heap().read(word)[0], 60u);
    rt.barrier_all();
  });
}

struct Arrived {
  std::uint64_t value;
  std::uint64_t weight;
};

TEST_P(HostOperations, CallsAndContinuationsRunOnce) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto words = rt.heap().allocate<std::uint64_t>(kWords);
    const auto sums = rt.heap().allocate<std::uint64_t>(2);
    const auto add = rt.register_handler<std::uint64_t, std::uint64_t>(
        "add", [] ESKER_LAMBDA(HandlerContext&, std::uint64_t & word, const std::uint64_t& value) {
          word += value;
        });
    const auto weigh = rt.register_handler<std::uint64_t, Arrived>(
        "weigh", [] ESKER_LAMBDA(HandlerContext&, std::uint64_t & sum, const Arrived& arrived) {
          sum += arrived.value * arrived.weight;
        });
    for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe) {
      for (std::uint64_t k = 0; k < kWords; ++k) rt.call(add, &words[k], k + 1, pe);
    }
    rt.barrier_all();
    for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe) {
      for (std::uint64_t k = 0; k < kWords; ++k) rt.get(then(weigh, &sums[1], {0, k}), &words[k], pe);
    }
    rt.barrier_all();
    std::uint64_t expected = 0;
    for (std::uint64_t k = 0; k < kWords; ++k) expected += rt.n_pes() * (k + 1) * rt.n_pes() * k;
    EXPECT_EQ(rt.heap().read(sums)[1], expected);
    rt.barrier_all();
  });
}

// Lanes of every PE read what they reach.
TEST_P(HostOperations, KernelsUsePointers) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto words = rt.heap().allocate<std::uint64_t>(kWords);
    const auto found = rt.heap().allocate<std::uint64_t>(rt.n_pes());
    const std::vector<std::uint64_t> mine(kWords, 100 + rt.pe());
    rt.heap().write(words, 0, std::span<const std::uint64_t>(mine));
    rt.barrier_all();
    std::vector<std::uint64_t> expected(rt.n_pes(), 0);
    for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe) {
      const std::uint64_t* const there = rt.ptr(&words[kWords - 1], pe);
      if (there == nullptr) continue;
      expected[pe] = 100 + pe;
      rt.launch(1, [=] ESKER_LAMBDA(Lane) { found[pe] = *there; });
    }
    rt.quiet();
    EXPECT_EQ(expected[rt.pe()], 100 + rt.pe());
    EXPECT_EQ(rt.heap().read(found), expected);
  });
}

// Lanes and the program send at the same time, and a launch takes along what the program has sent.
TEST_P(HostOperations, GoBesideKernels) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto counter = rt.heap().allocate<std::uint64_t>(1);
    for (int round = 0; round < 5; ++round) {
      for (std::uint64_t k = 0; k < kCalls; ++k)
        rt.inc(&counter[0], static_cast<std::uint32_t>(k % rt.n_pes()));
      rt.launch(kCalls * rt.n_pes(), [=] ESKER_LAMBDA(WorkItem item) {
        shmem_inc(item, &counter[0], static_cast<std::uint32_t>(item.global_id() % item.n_pes()));
      });
    }
    rt.barrier_all();
    std::uint64_t from_host = 0;
    for (std::uint64_t k = 0; k < kCalls; ++k) from_host += k % rt.n_pes() == rt.pe() ? 1 : 0;
    EXPECT_EQ(rt.heap().read(counter)[0], 5 * rt.n_pes() * (kCalls + from_host));
    rt.barrier_all();
  });
}

INSTANTIATE_TEST_SUITE_P(Ways, HostOperations, ::testing::ValuesIn(ways()));

#if !defined(ESKER_TEST_CUDA) && !defined(ESKER_TEST_HIP) && !defined(ESKER_TEST_SIMULATED)
using HostOperationsDeathTest = ::testing::Test;

void misuse_on_one_pe(const std::function<void(Runtime&, SymmetricArray<std::uint64_t>)>& body) {
  run_pes(1, [&](Runtime& rt) { body(rt, rt.heap().allocate<std::uint64_t>(4)); });
}

TEST(HostOperationsDeathTest, MisuseNamesTheCall) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(misuse_on_one_pe([](Runtime& rt, auto words) { rt.put(&words[0], 1, 1); }),
               "Runtime::put: PE 1 is not below 1");
  EXPECT_DEATH(misuse_on_one_pe([](Runtime& rt, auto words) { rt.add(words.data() + (1 << 20), 1, 0); }),
               "Runtime::add: a target of 8 bytes at heap offset .* is outside the symmetric heap");
  EXPECT_DEATH(misuse_on_one_pe([](Runtime& rt, auto words) {
                 std::uint64_t elsewhere = 0;
                 rt.get(&elsewhere, &words[0], 0);
               }),
               "Runtime::get: the reply.s target of 8 bytes at heap offset .* is outside the symmetric heap");
  EXPECT_DEATH(misuse_on_one_pe([](Runtime& rt, auto words) {
                 rt.call(Handler<std::uint64_t, std::uint32_t>{}, &words[0], 1, 0);
               }),
               "Runtime::call: the Handler is a default one");
}
#endif

}  // namespace
}  // namespace esker::testing
