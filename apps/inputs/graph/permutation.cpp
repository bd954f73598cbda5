// A Feistel network with halves that may differ by a bit.
#include "permutation.hpp"

#include <bit>

#include "../random.hpp"

namespace inputs {

Permutation::Permutation(std::uint64_t size, std::uint64_t seed) : size_{size} {
  const Random random(seed);
  for (std::size_t r = 0; r < kRounds; ++r) keys_[r] = random(r, 1);
  const unsigned bits = size < 2 ? 0 : static_cast<unsigned>(std::bit_width(size - 1));
  low_bits_ = bits - bits / 2;
  low_mask_ = (std::uint64_t{1} << low_bits_) - 1;
  high_mask_ = (std::uint64_t{1} << (bits / 2)) - 1;
}

std::uint64_t Permutation::operator()(std::uint64_t x) const {
  do x = pass(x);
  while (x >= size_);
  return x;
}

std::uint64_t Permutation::inverse(std::uint64_t y) const {
  do y = pass_back(y);
  while (y >= size_);
  return y;
}

std::uint64_t Permutation::pass(std::uint64_t x) const {
  for (std::size_t r = 0; r < kRounds; ++r) x = round(x, r);
  return x;
}

std::uint64_t Permutation::pass_back(std::uint64_t y) const {
  for (std::size_t r = kRounds; r-- > 0;) y = round(y, r);
  return y;
}

// Changes one half by a function of the other, so it is its own inverse.
std::uint64_t Permutation::round(std::uint64_t x, std::size_t number) const {
  const std::uint64_t low = x & low_mask_;
  const std::uint64_t high = x >> low_bits_;
  if (number % 2 == 0) return high << low_bits_ | (low ^ (mix(keys_[number] + high) & low_mask_));
  return (high ^ (mix(keys_[number] + low) & high_mask_)) << low_bits_ | low;
}

}  // namespace inputs
