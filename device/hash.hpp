// The library's hashes: of numbers by a multiplication, of text by FNV-1a.
#pragma once

#include <cstdint>
#include <string_view>

#include <esker/device/platform.hpp>

namespace esker {

/// Fibonacci hashing: 2^n over the golden ratio, odd. Neighbours come to stand far apart.
inline constexpr std::uint32_t kGolden32 = 0x9e3779b1;
inline constexpr std::uint64_t kGolden64 = 0x9e3779b97f4a7c15;

/// The product's upper `Bits` bits, which depend on every bit of the number.
template <int Bits>
ESKER_HD constexpr std::uint32_t hash32(std::uint32_t number) {
  return number * kGolden32 >> (32 - Bits);
}
template <int Bits>
ESKER_HD constexpr std::uint64_t hash64(std::uint64_t number) {
  return number * kGolden64 >> (64 - Bits);
}

/// FNV-1a, 64 bits. To hash several texts, start the next with what the last one came to.
inline constexpr std::uint64_t kTextHashStart = 0xcbf29ce484222325;
inline constexpr std::uint64_t kTextHashFactor = 0x100000001b3;
constexpr std::uint64_t hash_text(std::string_view text, std::uint64_t hash = kTextHashStart) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kTextHashFactor;
  return hash;
}

}  // namespace esker
