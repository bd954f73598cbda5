// AES-128, a lane a block: the four steps of a round as one table of words (Daemen and Rijmen, 5.2.1).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include <esker/lane.hpp>

namespace aes {

/// 16 bytes, as four columns of the state.
struct alignas(16) Block {
  std::uint32_t columns[4];
};
using Key = std::array<std::uint8_t, 16>;

/// What encryption reads, in memory of the device: it stays in a processor's cache.
struct Tables {
  std::uint32_t round_keys[44];
  // Of byte x, with s its substitute: 2s, s, s, 3s in the field, from the lowest byte on.
  std::uint32_t mixed[256];
};

/// x times the field's element 2, modulo x^8 + x^4 + x^3 + x + 1.
constexpr std::uint8_t doubled(std::uint8_t x) {
  return static_cast<std::uint8_t>(x << 1 ^ ((x & 0x80) != 0 ? 0x1b : 0));
}

/// The S-box, by its definition (FIPS-197, 5.1.1): the inverse in the field, then an affine map. 3 generates
/// the field, so p runs through all elements while q runs through their inverses.
constexpr std::array<std::uint8_t, 256> substitutes() {
  std::array<std::uint8_t, 256> box{};
  std::uint8_t p = 1, q = 1;
  do {
    p = static_cast<std::uint8_t>(p ^ doubled(p));
    q = static_cast<std::uint8_t>(q ^ q << 1);
    q = static_cast<std::uint8_t>(q ^ q << 2);
    q = static_cast<std::uint8_t>(q ^ q << 4);
    if ((q & 0x80) != 0) q = static_cast<std::uint8_t>(q ^ 0x09);
    std::uint32_t sum = q;
    for (std::uint32_t n = 1; n <= 4; ++n)
      sum ^= (std::uint32_t{q} << n | std::uint32_t{q} >> (8 - n)) & 0xff;
    box[p] = static_cast<std::uint8_t>(sum ^ 0x63);
  } while (p != 1);
  box[0] = 0x63;
  return box;
}

inline Tables tables_of(const Key& key) {
  constexpr std::array<std::uint8_t, 256> kBox = substitutes();
  Tables tables{};
  for (std::uint32_t x = 0; x < 256; ++x) {
    const std::uint32_t s = kBox[x], two = doubled(kBox[x]);
    tables.mixed[x] = two | s << 8 | s << 16 | (two ^ s) << 24;
  }
  std::memcpy(tables.round_keys, key.data(), key.size());
  std::uint8_t constant = 1;
  for (std::uint32_t i = 4; i < 44; ++i) {
    std::uint32_t word = tables.round_keys[i - 1];
    if (i % 4 == 0) {
      word = word >> 8 | word << 24;
      std::uint32_t substituted = 0;
      for (std::uint32_t b = 0; b < 32; b += 8) substituted |= std::uint32_t{kBox[word >> b & 0xff]} << b;
      word = substituted ^ constant;
      constant = doubled(constant);
    }
    tables.round_keys[i] = tables.round_keys[i - 4] ^ word;
  }
  return tables;
}

ESKER_HD inline std::uint32_t rotated(std::uint32_t word, std::uint32_t bits) {
  return word << bits | word >> (32 - bits);
}

/// The electronic code book: each block alone.
ESKER_HD inline Block encrypted(const Tables& tables, const Block& plain) {
  const std::uint32_t* const keys = tables.round_keys;
  Block state;
  for (std::uint32_t c = 0; c < 4; ++c) state.columns[c] = plain.columns[c] ^ keys[c];
  for (std::uint32_t round = 1; round < 10; ++round) {
    Block next;
    for (std::uint32_t c = 0; c < 4; ++c) {
      next.columns[c] = keys[4 * round + c] ^ tables.mixed[state.columns[c] & 0xff] ^
                        rotated(tables.mixed[state.columns[(c + 1) % 4] >> 8 & 0xff], 8) ^
                        rotated(tables.mixed[state.columns[(c + 2) % 4] >> 16 & 0xff], 16) ^
                        rotated(tables.mixed[state.columns[(c + 3) % 4] >> 24], 24);
    }
    state = next;
  }
  // The last round does not mix: a substitute alone is the second byte of its word.
  const auto substitute = [&](std::uint32_t byte) { return tables.mixed[byte] >> 8 & 0xff; };
  Block result;
  for (std::uint32_t c = 0; c < 4; ++c) {
    result.columns[c] = keys[40 + c] ^ (substitute(state.columns[c] & 0xff) |
                                        substitute(state.columns[(c + 1) % 4] >> 8 & 0xff) << 8 |
                                        substitute(state.columns[(c + 2) % 4] >> 16 & 0xff) << 16 |
                                        substitute(state.columns[(c + 3) % 4] >> 24) << 24);
  }
  return result;
}

/// A stage: encrypts a frame.
struct Encrypt {
  const Tables* tables;

  template <class Stage, class In, class Out>
  ESKER_HD void operator()(Stage& stage, const In& in, Out& out) const {
    for (std::uint32_t i = stage.lane(); i < in.count; i += stage.lanes()) out[i] = encrypted(*tables, in[i]);
    out.count = in.count;
  }
};

}  // namespace aes
