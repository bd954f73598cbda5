// One seed a test program: printed, and repeatable with ESKER_TEST_SEED.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

namespace esker::testing {

inline std::uint64_t seed() {
  static const std::uint64_t value = [] {
    const char* given = std::getenv("ESKER_TEST_SEED");
    const std::uint64_t chosen = given != nullptr ? std::stoull(given) : std::random_device{}();
    std::cout << "ESKER_TEST_SEED=" << chosen << std::endl;
    return chosen;
  }();
  return value;
}

/// SplitMix64's finaliser: a random word that any PE can draw again.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace esker::testing
