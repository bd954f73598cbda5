// Every operation on every type, as one collective check: over loopback and over MPI.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "updates.hpp"

namespace esker::testing {

struct Pair {
  std::uint64_t first, second;
};

inline void check_all_puts(Runtime& rt) {
  check_puts<std::uint8_t>(rt, "put of 1 byte");
  check_puts<std::uint16_t>(rt, "put of 2 bytes");
  check_puts<float>(rt, "put of 4 bytes");
  check_puts<std::uint64_t>(rt, "put of 8 bytes");
  check_puts<Pair>(rt, "put of 16 bytes");
}

template <class T>
void check_min_max_add(Runtime& rt, const std::string& type) {
  using Limits = std::numeric_limits<T>;
  check_updates<T>(
      rt, "min " + type, Limits::max(),
      [](auto& item, T* at, T v, std::uint32_t pe) { shmem_min(item, at, v, pe); },
      [](T old, T v) { return std::min(old, v); });
  check_updates<T>(
      rt, "max " + type, Limits::lowest(),
      [](auto& item, T* at, T v, std::uint32_t pe) { shmem_max(item, at, v, pe); },
      [](T old, T v) { return std::max(old, v); });
  check_updates<T>(
      rt, "add " + type, T{5}, [](auto& item, T* at, T v, std::uint32_t pe) { shmem_add(item, at, v, pe); },
      [](T old, T v) {
        if constexpr (std::is_integral_v<T>) {
          return static_cast<T>(static_cast<std::uint64_t>(old) + static_cast<std::uint64_t>(v));
        } else {
          return old + v;
        }
      });
}

template <class T>
void check_integer(Runtime& rt, const std::string& type) {
  check_min_max_add<T>(rt, type);
  check_updates<T>(
      rt, "inc " + type, std::numeric_limits<T>::max(),  // wraps
      [](auto& item, T* at, T, std::uint32_t pe) { shmem_inc(item, at, pe); },
      [](T old, T) { return static_cast<T>(static_cast<std::uint64_t>(old) + 1); });
  check_updates<T>(
      rt, "and " + type, static_cast<T>(-1),
      [](auto& item, T* at, T v, std::uint32_t pe) { shmem_and(item, at, static_cast<T>(v | 0x5555), pe); },
      [](T old, T v) { return static_cast<T>(old & (v | 0x5555)); });
  check_updates<T>(
      rt, "or " + type, T{0},
      [](auto& item, T* at, T v, std::uint32_t pe) { shmem_or(item, at, static_cast<T>(v & 0x1111), pe); },
      [](T old, T v) { return static_cast<T>(old | (v & 0x1111)); });
  check_updates<T>(
      rt, "xor " + type, T{9}, [](auto& item, T* at, T v, std::uint32_t pe) { shmem_xor(item, at, v, pe); },
      [](T old, T v) { return static_cast<T>(old ^ v); });
}

inline void check_all_numbers(Runtime& rt) {
  check_integer<std::int32_t>(rt, "i32");
  check_integer<std::uint32_t>(rt, "u32");
  check_integer<std::int64_t>(rt, "i64");
  check_integer<std::uint64_t>(rt, "u64");
  check_min_max_add<float>(rt, "float");
  check_min_max_add<double>(rt, "double");
}

}  // namespace esker::testing
