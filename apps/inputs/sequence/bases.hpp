// Letters of sequences and of their qualities. For host and device.
#pragma once

#include <cstdint>

#include <esker/esker.hpp>  // ESKER_HD

namespace inputs {

/// Code of a base: A 0, C 1, G 2, T 3, in either case; everything else, such as N and the other letters for
/// one of several, is no base. The complement of code c is 3 - c.
constexpr std::uint8_t kNoBase = 4;
ESKER_HD constexpr std::uint8_t base_code(char base) {
  // Bits 1 and 2 of the letters are 0 for A, 1 for C, 3 for G and 2 for T.
  const auto upper = static_cast<unsigned>(static_cast<unsigned char>(base)) & 0xdfu;
  const unsigned bits = (upper >> 1) & 3u;
  const bool is_base = upper == 'A' || upper == 'C' || upper == 'G' || upper == 'T';
  return is_base ? static_cast<std::uint8_t>(bits ^ (bits >> 1)) : kNoBase;
}

/// Letter of a code; 'N' for kNoBase.
ESKER_HD constexpr char base_letter(std::uint8_t code) { return "ACGTN"[code]; }

/// Phred score of a quality character, '!' to '~': the base is wrong with probability 10^(-score / 10).
/// Encoding Phred+33.
constexpr std::uint8_t kMaxPhred = 93;
ESKER_HD constexpr std::uint8_t phred(char quality) { return static_cast<std::uint8_t>(quality - '!'); }

}  // namespace inputs
