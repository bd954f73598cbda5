// RAID-6: the parity P and the syndrome Q of a stripe (H. P. Anvin, The mathematics of RAID-6). A lane
// computes 16 bytes of each at a time.
#pragma once

#include <cstdint>

#include <esker/lane.hpp>

namespace raid6 {

/// 16 bytes of a block.
struct alignas(16) Words {
  std::uint32_t words[4];
};

/// Each of four bytes times g = 2, modulo x^8 + x^4 + x^3 + x^2 + 1.
ESKER_HD inline std::uint32_t doubled(std::uint32_t bytes) {
  return ((bytes & 0x7f7f7f7fu) << 1) ^ ((bytes >> 7 & 0x01010101u) * 0x1d);
}

/// A stage: a frame is a stripe, that is data blocks 0, 1, ... one behind the other; its result is P, then Q.
struct Encode {
  std::uint32_t blocks;  // in a stripe

  template <class Stage, class In, class Out>
  ESKER_HD void operator()(Stage& stage, const In& in, Out& out) const {
    const std::uint32_t n = in.count / blocks;  // Words in a block
    for (std::uint32_t i = stage.lane(); i < n; i += stage.lanes()) {
      Words p{}, q{};
      // Horner's rule, from the last block on; some loads at a time are on their way together.
      std::uint32_t block = blocks;
      for (; block >= kTogether; block -= kTogether) {
        Words data[kTogether];
        for (std::uint32_t b = 0; b < kTogether; ++b) data[b] = in[(block - 1 - b) * n + i];
        for (std::uint32_t b = 0; b < kTogether; ++b) add(p, q, data[b]);
      }
      for (; block > 0; --block) add(p, q, in[(block - 1) * n + i]);
      out[i] = p;
      out[n + i] = q;
    }
    out.count = 2 * n;
  }

 private:
  static constexpr std::uint32_t kTogether = 4;

  ESKER_HD static void add(Words& p, Words& q, const Words& data) {
    for (std::uint32_t w = 0; w < 4; ++w) {
      p.words[w] ^= data.words[w];
      q.words[w] = doubled(q.words[w]) ^ data.words[w];
    }
  }
};

}  // namespace raid6
