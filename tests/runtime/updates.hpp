// Random updates of memory on all PEs, against a serial reference that each PE replays for its own part.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include <esker/runtime.hpp>

#include "../device/gtest.hpp"
#include "seed.hpp"
#include "ways.hpp"

namespace esker::testing {

/// Of each PE, in each round of checks: on a GPU some hundred waves, fewer on a simulated one.
inline constexpr std::uint64_t kUpdates = !kOnGpu ? 300 : kSimulated ? 500 : 3000;

struct Draw {
  std::uint32_t pe;
  std::uint64_t index;
  std::uint64_t bits;
};

ESKER_HD inline Draw draw(std::uint64_t stream, std::uint32_t sender, std::uint64_t k, std::uint32_t n_pes,
                          std::uint64_t size) {
  const std::uint64_t r = mix(mix(stream * 64 + sender) + k);
  return {static_cast<std::uint32_t>((r >> 32) % n_pes), r % size, mix(r)};
}

/// Floating-point values are small integers, so that sums are exact in any order.
template <class T>
ESKER_HD T value_from(std::uint64_t bits) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(static_cast<std::int64_t>(bits % 4001) - 2000);
  } else {
    T value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
  }
}

enum class Update { kMin, kMax, kAdd, kInc, kAnd, kOr, kXor };

/// Its operand: some bits stay after many AND and OR.
template <class T>
ESKER_HD T operand_of(Update update, std::uint64_t bits) {
  const T value = value_from<T>(bits);
  if constexpr (std::is_integral_v<T>) {
    if (update == Update::kAnd) return static_cast<T>(value | 0x5555);
    if (update == Update::kOr) return static_cast<T>(value & 0x1111);
  }
  return value;
}

/// What it makes of `old`.
template <class T>
T updated(Update update, T old, T value) {
  if (update == Update::kMin) return std::min(old, value);
  if (update == Update::kMax) return std::max(old, value);
  if constexpr (std::is_integral_v<T>) {
    if (update == Update::kInc) value = 1;
    if (update == Update::kAnd) return static_cast<T>(old & value);
    if (update == Update::kOr) return static_cast<T>(old | value);
    if (update == Update::kXor) return static_cast<T>(old ^ value);
    return static_cast<T>(static_cast<std::uint64_t>(old) + static_cast<std::uint64_t>(value));  // wraps
  } else {
    return old + value;
  }
}

/// A message a lane to a random word of a random PE. The operation is chosen when it runs: one kernel to
/// compile a type.
template <class T>
struct SendUpdates {
  Update update;
  std::uint64_t stream;
  SymmetricArray<T> array;

  ESKER_HD void operator()(WorkItem item) const {
    const Draw d = draw(stream, item.pe(), item.global_id(), item.n_pes(), array.size());
    T* const at = &array[d.index];
    const T value = operand_of<T>(update, d.bits);
    if (update == Update::kMin) shmem_min(item, at, value, d.pe);
    if (update == Update::kMax) shmem_max(item, at, value, d.pe);
    if (update == Update::kAdd) shmem_add(item, at, value, d.pe);
    if constexpr (std::is_integral_v<T>) {
      if (update == Update::kInc) shmem_inc(item, at, d.pe);
      if (update == Update::kAnd) shmem_and(item, at, value, d.pe);
      if (update == Update::kOr) shmem_or(item, at, value, d.pe);
      if (update == Update::kXor) shmem_xor(item, at, value, d.pe);
    }
  }
};

/// Collective. Every PE sends updates to random words of all PEs; every word must then hold what `updated()`
/// makes of `initial`, one update after the other.
template <class T>
void check_updates(Runtime& rt, const std::string& what, Update update, T initial,
                   std::uint64_t messages = kUpdates) {
  constexpr std::uint64_t kWords = 37;  // several updates a word
  const std::uint64_t stream = seed() + std::hash<std::string>{}(what);
  const auto array = rt.heap().allocate<T>(kWords);
  std::vector<T> expected(kWords, initial);
  rt.heap().write(array, 0, std::span<const T>(expected));
  rt.barrier_all();
  rt.launch(messages, SendUpdates<T>{update, stream, array}, "updates");
  rt.barrier_all();
  for (std::uint32_t sender = 0; sender < rt.n_pes(); ++sender) {
    for (std::uint64_t k = 0; k < messages; ++k) {
      const Draw d = draw(stream, sender, k, rt.n_pes(), kWords);
      if (d.pe != rt.pe()) continue;
      expected[d.index] = updated(update, expected[d.index], operand_of<T>(update, d.bits));
    }
  }
  EXPECT_EQ(rt.heap().read(array), expected) << what << " on PE " << rt.pe();
  rt.heap().free(array);
}

/// What PE `sender` puts as its message k.
template <class T>
ESKER_HD T value_put(std::uint64_t stream, std::uint32_t sender, std::uint64_t k) {
  const std::uint64_t words[2] = {mix(stream + sender * kUpdates + k), mix(~stream + sender * kUpdates + k)};
  T result;
  __builtin_memcpy(&result, words, sizeof result);
  return result;
}

/// Collective. Every word is put at most once, so that each message shows.
template <class T>
void check_puts(Runtime& rt, const std::string& what) {
  const std::uint64_t stream = seed() + std::hash<std::string>{}(what);
  const auto array = rt.heap().allocate<T>(kUpdates * rt.n_pes());
  rt.launch(
      kUpdates,
      [=] ESKER_LAMBDA(WorkItem item) {
        const std::uint64_t k = item.global_id();
        const Draw d = draw(stream, item.pe(), k, item.n_pes(), kUpdates);
        shmem_put(item, &array[item.pe() * kUpdates + k], value_put<T>(stream, item.pe(), k), d.pe);
      },
      "puts");
  rt.barrier_all();
  const std::vector<T> got = rt.heap().read(array);
  std::uint64_t wrong = 0;
  for (std::uint32_t sender = 0; sender < rt.n_pes(); ++sender) {
    for (std::uint64_t k = 0; k < kUpdates; ++k) {
      const Draw d = draw(stream, sender, k, rt.n_pes(), kUpdates);
      const T expected = d.pe == rt.pe() ? value_put<T>(stream, sender, k) : T{};
      wrong += std::memcmp(&got[sender * kUpdates + k], &expected, sizeof expected) != 0 ? 1 : 0;
    }
  }
  EXPECT_EQ(wrong, 0u) << what << " on PE " << rt.pe();
  rt.heap().free(array);
}

}  // namespace esker::testing
