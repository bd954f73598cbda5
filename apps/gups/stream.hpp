// The streams of updates: which word of the table, and on which PE.
#pragma once

#include <cstdint>

#include <esker/esker.hpp>  // ESKER_HD

#include "../inputs/random.hpp"

namespace gups {

/// A word of the distributed table: PE and index in its part.
struct Place {
  std::uint32_t pe;
  std::uint64_t index;
};

/// The updates of PE `pe`: `updates_a_pe` consecutive words of the seed's, so that PEs share none.
ESKER_HD constexpr inputs::RandomStream stream_of(std::uint64_t seed, std::uint64_t pe,
                                                  std::uint64_t updates_a_pe) {
  return {(seed + pe * updates_a_pe + 1) * inputs::kStep};
}

/// What a put writes: a function of the table's entry, so that puts of one word agree.
ESKER_HD constexpr std::uint64_t put_value(std::uint64_t seed, std::uint64_t entry) {
  return inputs::mix(seed ^ entry) | 1;
}

/// What a compare-and-swap stores: neither 0 nor all ones.
ESKER_HD constexpr std::uint64_t claim_of(std::uint64_t r) { return (r & ~std::uint64_t{2}) | 1; }

/// Uniform over pes * words_a_pe places without a division: the low half of r picks the PE, its top bits
/// the word.
ESKER_HD constexpr Place place(std::uint64_t r, std::uint32_t pes, std::uint64_t words_a_pe) {
  return {static_cast<std::uint32_t>((r & 0xffffffff) * pes >> 32), inputs::scaled(r, words_a_pe)};
}

/// HPCC RandomAccess: a_{k+1} = 2 a_k, with 7 added where the top bit was set (x^64 + x^2 + x + 1 over
/// GF(2)).
ESKER_HD constexpr std::uint64_t hpcc_next(std::uint64_t a) {
  return (a << 1) ^ (static_cast<std::int64_t>(a) < 0 ? 7u : 0u);
}

/// Element n of that stream, 0 <= n, by squaring: 64 steps instead of n.
ESKER_HD inline std::uint64_t hpcc_start(std::uint64_t n) {
  constexpr std::uint64_t kPeriod = 1317624576693539401;  // of the stream
  n %= kPeriod;
  // Multiplication by x^(2^i) is linear over GF(2): square[i] is x^(2^i) itself, and a product of two
  // elements is a sum of shifted ones.
  const auto multiply = [](std::uint64_t a, std::uint64_t b) {
    std::uint64_t product = 0;
    for (; b != 0; b >>= 1) {
      if ((b & 1) != 0) product ^= a;
      a = hpcc_next(a);
    }
    return product;
  };
  std::uint64_t result = 1;
  std::uint64_t power = 2;  // x
  for (; n != 0; n >>= 1) {
    if ((n & 1) != 0) result = multiply(result, power);
    power = multiply(power, power);
  }
  return result;
}

}  // namespace gups
