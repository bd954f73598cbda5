// Vertices to start from, drawn as the GAP benchmark suite draws them.
#pragma once

#include <cstdint>
#include <random>

namespace graph {

/// Numbers below `vertices`, all as likely as each other, the same in each program: words of a Mersenne
/// twister with GAP's seed, those that would favour small numbers left out, modulo `vertices`. The user
/// passes over vertices without edges, as GAP does. Requires 0 < vertices <= 2^32.
class Sources {
 public:
  explicit Sources(std::uint64_t vertices) : vertices_{vertices} {}
  std::uint64_t next() {
    for (;;) {
      const std::uint64_t word = words_();
      if (word < kWords / vertices_ * vertices_) return word % vertices_;
    }
  }

 private:
  static constexpr std::uint64_t kWords = std::uint64_t{1} << 32;
  static constexpr std::uint32_t kGapSeed = 27491095;
  std::uint64_t vertices_;
  std::mt19937 words_{kGapSeed};
};

}  // namespace graph
