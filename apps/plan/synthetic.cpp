// Synthetic work on the host.
#include <algorithm>
#include <cstdint>

#include "../harness/vector_width.hpp"
#include "kernels.hpp"

namespace plan_apps {

FOR_EACH_VECTOR_WIDTH
void Synthetic::on_host(std::uint64_t words) const {
  constexpr std::uint64_t kBlock = 512;  // Block by block, so that a compiler makes vectors of it.
  for (std::uint64_t first = 0; first < words; first += kBlock) {
    const std::uint64_t count = std::min<std::uint64_t>(kBlock, words - first);
    std::uint32_t sums[kBlock];
    std::fill(sums, sums + kBlock, seed);
    for (std::uint32_t r = 0; r < ins; ++r) {
      const std::uint32_t* const from = in[r] + first;
      for (std::uint64_t i = 0; i < count; ++i) sums[i] = mixed(sums[i], from[i]);
    }
    for (std::uint32_t w = 0; w < outs; ++w) {
      std::uint32_t* const to = out[w] + first;
      for (std::uint64_t i = 0; i < count; ++i) to[i] = mixed(sums[i], w);
    }
  }
}

}  // namespace plan_apps
