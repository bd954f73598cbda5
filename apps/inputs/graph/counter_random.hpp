// Random numbers by index: the same on every process, in any order.
#pragma once

#include <cstdint>

namespace graph {

/// SplitMix64's finaliser: a bijection of 64 bits.
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// A table of random words that is computed where it is read. Seeds give unrelated tables.
class CounterRandom {
 public:
  explicit constexpr CounterRandom(std::uint64_t seed) : key_{mix(seed + kStep)} {}

  /// 64 uniform bits: word k of row i.
  constexpr std::uint64_t operator()(std::uint64_t i, std::uint64_t k) const {
    return mix(mix(key_ + (i + 1) * kStep) + (k + 1) * kStep);
  }

 private:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;

  std::uint64_t key_;
};

/// Uniform in [0, below) from 64 uniform bits, with a bias of at most below / 2^64.
constexpr std::uint64_t scaled(std::uint64_t bits, std::uint64_t below) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(bits) * below) >> 64);
}

}  // namespace graph
