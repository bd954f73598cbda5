// Random updates of memory on all PEs, against a serial reference that each PE replays for its own part.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include <esker/runtime/runtime.hpp>

#include "seed.hpp"

namespace esker::testing {

struct Draw {
  std::uint32_t pe;
  std::uint64_t index;
  std::uint64_t bits;
};

inline Draw draw(std::uint64_t stream, std::uint32_t sender, std::uint64_t k, std::uint32_t n_pes,
                 std::uint64_t size) {
  const std::uint64_t r = mix(mix(stream * 64 + sender) + k);
  return {static_cast<std::uint32_t>((r >> 32) % n_pes), r % size, mix(r)};
}

/// Floating-point values are small integers, so that sums are exact in any order.
template <class T>
T value_from(std::uint64_t bits) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(static_cast<std::int64_t>(bits % 4001) - 2000);
  } else {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
}

/// Collective. Every PE sends `messages` updates to random words of all PEs by `send(item, target, value,
/// pe)`; every word must then hold what `reference(old, value)` makes of it, one update after the other.
template <class T, class Send, class Reference>
void check_updates(Runtime& rt, const std::string& what, T initial, Send send, Reference reference,
                   std::uint64_t messages = 300) {
  constexpr std::uint64_t kWords = 37;  // several updates a word
  const std::uint64_t stream = seed() + std::hash<std::string>{}(what);
  const auto array = rt.heap().allocate<T>(kWords);
  for (T& word : array) word = initial;
  rt.barrier_all();
  rt.launch(messages, [=](WorkItem item) {
    const Draw d = draw(stream, item.pe(), item.global_id(), item.n_pes(), kWords);
    send(item, &array[d.index], value_from<T>(d.bits), d.pe);
  });
  rt.barrier_all();
  std::vector<T> expected(kWords, initial);
  for (std::uint32_t sender = 0; sender < rt.n_pes(); ++sender) {
    for (std::uint64_t k = 0; k < messages; ++k) {
      const Draw d = draw(stream, sender, k, rt.n_pes(), kWords);
      if (d.pe == rt.pe()) expected[d.index] = reference(expected[d.index], value_from<T>(d.bits));
    }
  }
  EXPECT_EQ(std::vector<T>(array.begin(), array.end()), expected) << what << " on PE " << rt.pe();
  rt.heap().free(array);
}

/// Collective. Every word is put at most once, so that each message shows.
template <class T>
void check_puts(Runtime& rt, const std::string& what, std::uint64_t messages = 300) {
  const std::uint64_t stream = seed() + std::hash<std::string>{}(what);
  const auto value = [=](std::uint32_t sender, std::uint64_t k) {
    const std::uint64_t words[2] = {mix(stream + sender * messages + k),
                                    mix(~stream + sender * messages + k)};
    T result;
    std::memcpy(&result, words, sizeof result);
    return result;
  };
  const auto array = rt.heap().allocate<T>(messages * rt.n_pes());
  rt.launch(messages, [=](WorkItem item) {
    const std::uint64_t k = item.global_id();
    const Draw d = draw(stream, item.pe(), k, item.n_pes(), messages);
    shmem_put(item, &array[item.pe() * messages + k], value(item.pe(), k), d.pe);
  });
  rt.barrier_all();
  std::uint64_t wrong = 0;
  for (std::uint32_t sender = 0; sender < rt.n_pes(); ++sender) {
    for (std::uint64_t k = 0; k < messages; ++k) {
      const Draw d = draw(stream, sender, k, rt.n_pes(), messages);
      const T expected = d.pe == rt.pe() ? value(sender, k) : T{};
      wrong += std::memcmp(&array[sender * messages + k], &expected, sizeof expected) != 0 ? 1 : 0;
    }
  }
  EXPECT_EQ(wrong, 0u) << what << " on PE " << rt.pe();
  rt.heap().free(array);
}

}  // namespace esker::testing
