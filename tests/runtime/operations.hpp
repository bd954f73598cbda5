// Every operation on every type, as one collective check.
#pragma once

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
  check_updates<T>(rt, "min " + type, Update::kMin, Limits::max());
  check_updates<T>(rt, "max " + type, Update::kMax, Limits::lowest());
  check_updates<T>(rt, "add " + type, Update::kAdd, T{5});
}

template <class T>
void check_integer(Runtime& rt, const std::string& type) {
  check_min_max_add<T>(rt, type);
  check_updates<T>(rt, "inc " + type, Update::kInc, std::numeric_limits<T>::max());  // wraps
  check_updates<T>(rt, "and " + type, Update::kAnd, static_cast<T>(-1));
  check_updates<T>(rt, "or " + type, Update::kOr, T{0});
  check_updates<T>(rt, "xor " + type, Update::kXor, T{9});
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
