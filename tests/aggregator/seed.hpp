// One seed a test run, printed, taken from ESKER_TEST_SEED where that is set.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace esker {

inline std::uint64_t test_seed() {
  static const std::uint64_t seed = [] {
    const char* text = std::getenv("ESKER_TEST_SEED");
    const std::uint64_t value = text != nullptr ? std::strtoull(text, nullptr, 0) : std::random_device{}();
    std::printf("ESKER_TEST_SEED=%llu\n", static_cast<unsigned long long>(value));
    std::fflush(stdout);
    return value;
  }();
  return seed;
}

/// Uniform in [0, below).
inline std::uint64_t draw(std::mt19937_64& random, std::uint64_t below) { return random() % below; }

}  // namespace esker
