// SHA-1 (FIPS 180-4) of a short message, for random numbers that a tree's nodes make of their parent's.
#pragma once

#include <cstdint>

#include <esker/lane.hpp>

namespace uts {

/// 20 bytes, as five words, the first byte in the highest place.
struct Digest {
  std::uint32_t words[5];
};

/// Of so many words (up to 13) of four bytes, the first byte in the highest place.
template <std::uint32_t kWords>
ESKER_HD inline Digest sha1(const std::uint32_t (&message)[kWords]) {
  static_assert(kWords <= 13, "one block");
  const auto rotated = [](std::uint32_t word, int by) { return word << by | word >> (32 - by); };
  // The message, a one, zeros, and its length in bits.
  std::uint32_t w[16] = {};
  for (std::uint32_t i = 0; i < kWords; ++i) w[i] = message[i];
  w[kWords] = 0x80000000u;
  w[15] = kWords * 32;
  std::uint32_t a = 0x67452301u, b = 0xefcdab89u, c = 0x98badcfeu, d = 0x10325476u, e = 0xc3d2e1f0u;
  for (int i = 0; i < 80; ++i) {
    if (i >= 16) w[i % 16] = rotated(w[(i + 13) % 16] ^ w[(i + 8) % 16] ^ w[(i + 2) % 16] ^ w[i % 16], 1);
    std::uint32_t mixed = b ^ c ^ d, constant = 0xca62c1d6u;
    if (i < 20) {
      mixed = (b & c) | (~b & d);
      constant = 0x5a827999u;
    } else if (i < 40) {
      constant = 0x6ed9eba1u;
    } else if (i < 60) {
      mixed = (b & c) | (b & d) | (c & d);
      constant = 0x8f1bbcdcu;
    }
    const std::uint32_t next = rotated(a, 5) + mixed + e + constant + w[i % 16];
    e = d;
    d = c;
    c = rotated(b, 30);
    b = a;
    a = next;
  }
  return {{a + 0x67452301u, b + 0xefcdab89u, c + 0x98badcfeu, d + 0x10325476u, e + 0xc3d2e1f0u}};
}

}  // namespace uts
