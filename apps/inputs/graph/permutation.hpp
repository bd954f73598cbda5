// A seeded bijection of [0, n) without a table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace inputs {

/// Contract. operator() is a bijection of [0, size) and inverse() its inverse; arguments are below size.
/// A Feistel network permutes the smallest power of two that holds size, and a value that falls outside
/// goes through again until it is inside ("cycle walking"): fewer than two passes on average.
class Permutation {
 public:
  Permutation(std::uint64_t size, std::uint64_t seed);

  std::uint64_t operator()(std::uint64_t x) const;
  std::uint64_t inverse(std::uint64_t y) const;

 private:
  std::uint64_t pass(std::uint64_t x) const;
  std::uint64_t pass_back(std::uint64_t y) const;
  std::uint64_t round(std::uint64_t x, std::size_t number) const;

  static constexpr std::size_t kRounds = 6;

  std::uint64_t size_;
  std::array<std::uint64_t, kRounds> keys_;
  unsigned low_bits_;  // of the half that even rounds change
  std::uint64_t low_mask_;
  std::uint64_t high_mask_;  // of the other half, shifted down
};

}  // namespace inputs
