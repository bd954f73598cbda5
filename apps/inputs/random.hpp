// Random words that any process can draw again: functions of a seed and a counter, without a state.
#pragma once

#include <cstdint>

#include <esker/esker.hpp>  // ESKER_HD

namespace inputs {

/// SplitMix64's finaliser: a bijection.
ESKER_HD constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Word `index` of stream `stream` of a seed: SplitMix64 from a start that the seed and the stream choose.
ESKER_HD constexpr std::uint64_t random_word(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;
  const std::uint64_t start = mix(mix(seed + kStep) + (stream + 1) * kStep);
  return mix(start + index * kStep);
}

__extension__ using Wide = unsigned __int128;

/// A random word to an integer, uniform in [0, below); it uses the word's top bits.
ESKER_HD constexpr std::uint64_t scale(std::uint64_t word, std::uint64_t below) {
  return static_cast<std::uint64_t>((static_cast<Wide>(word) * below) >> 64);
}

/// A random word is below chance(p) with probability p, 0 <= p <= 1.
constexpr std::uint64_t chance(double p) {
  return p >= 1 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(p * 18446744073709551616.0);
}

/// A random word to a number, uniform in (0, 1).
ESKER_HD constexpr double unit(std::uint64_t word) {
  return (static_cast<double>(word >> 12) + 0.5) / 4503599627370496.0;
}

}  // namespace inputs
