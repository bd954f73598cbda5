// What RAID-6 is for: two lost data blocks rebuilt from the others, P and Q, byte by byte on the host.
#pragma once

#include <cstddef>
#include <cstdint>

namespace raid6 {

/// By logarithms to the base g = 2, where the encoder doubles words.
class Rebuild {
 public:
  Rebuild() {
    std::uint32_t power = 1;
    for (std::uint32_t i = 0; i < 255; ++i) {
      powers_[i] = powers_[i + 255] = static_cast<std::uint8_t>(power);
      logarithms_[power] = i;
      power = power << 1 ^ ((power & 0x80) != 0 ? 0x11d : 0);
    }
  }

  /// Counts the bytes of blocks `x` < `y` of a stripe that come out otherwise than they are. `data` has
  /// `blocks` blocks of `bytes` each; 2 <= blocks <= 255.
  std::size_t wrong_bytes(const std::uint8_t* data, const std::uint8_t* p, const std::uint8_t* q,
                          std::uint32_t blocks, std::size_t bytes, std::uint32_t x, std::uint32_t y) const {
    // dx + dy = P + the others' P; g^x dx + g^y dy = Q + the others' Q.
    const std::uint32_t factor = powers_[255 - x % 255];  // 1 / g^x
    const std::uint32_t gap = powers_[y - x];             // g^(y - x)
    const std::uint32_t divisor = logarithms_[gap ^ 1];
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      std::uint32_t left_p = p[i], left_q = q[i];
      for (std::uint32_t b = 0; b < blocks; ++b) {
        if (b == x || b == y) continue;
        const std::uint32_t byte = data[b * bytes + i];
        left_p ^= byte;
        left_q ^= times(byte, powers_[b % 255]);
      }
      // Q / g^x + g^(y - x) P = (1 + g^(y - x)) dx
      const std::uint32_t sum = times(left_q, factor) ^ times(left_p, gap);
      const std::uint32_t dx = sum == 0 ? 0 : powers_[logarithms_[sum] + 255 - divisor];
      const std::uint32_t dy = left_p ^ dx;
      wrong += (dx != data[x * bytes + i] ? 1u : 0u) + (dy != data[y * bytes + i] ? 1u : 0u);
    }
    return wrong;
  }

 private:
  std::uint32_t times(std::uint32_t a, std::uint32_t b) const {
    return a == 0 || b == 0 ? 0 : powers_[logarithms_[a] + logarithms_[b]];
  }

  std::uint8_t powers_[510];
  std::uint32_t logarithms_[256] = {};
};

}  // namespace raid6
