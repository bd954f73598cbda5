// Random words that any process can draw again: functions of a seed and a counter, without a state.
#pragma once

#include <cstdint>

#include <esker/esker.hpp>  // ESKER_HD

namespace inputs {

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): its step, and its finaliser, a bijection.
constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;
ESKER_HD constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// SplitMix64's words from `start` on: any of them, by a multiply-add and mix().
struct RandomStream {
  std::uint64_t start;
  ESKER_HD constexpr std::uint64_t operator[](std::uint64_t index) const {
    return mix(start + index * kStep);
  }
};

/// The streams of a seed, unrelated to each other and to those of other seeds.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) : key_{mix(seed + kStep)} {}

  ESKER_HD constexpr RandomStream stream(std::uint64_t number) const {
    return {mix(key_ + (number + 1) * kStep)};
  }
  /// Word `index` of a stream.
  ESKER_HD constexpr std::uint64_t operator()(std::uint64_t stream_number, std::uint64_t index) const {
    return stream(stream_number)[index];
  }

 private:
  std::uint64_t key_;
};

__extension__ using Wide = unsigned __int128;

/// A random word to an integer, uniform in [0, below) but for a bias of below / 2^64; it uses the word's top
/// bits.
ESKER_HD constexpr std::uint64_t scaled(std::uint64_t word, std::uint64_t below) {
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
