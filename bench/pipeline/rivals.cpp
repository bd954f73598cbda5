// Doubling words by copies and kernels.
#include "rivals.hpp"

#include <stdexcept>

namespace esker::bench {

namespace {
struct Doubling {
  ESKER_HD void operator()(const Quad* in, Quad* out, std::uint32_t n, std::uint32_t lane,
                           std::uint32_t lanes) const {
    double_quads(in, out, n, lane, lanes);
  }
};
struct Words {
  std::uint32_t times = 2;
  void fill(Quad* at, std::uint64_t quads, std::uint64_t slot) const { fill_slot(at, quads, slot); }
  void check(const Quad* at, std::uint64_t quads, std::uint64_t slot, bool all) const {
    if (!is_right(at, quads, slot, times, all)) throw std::runtime_error("a kernel gave a wrong word");
  }
};
}  // namespace

double copy_kernel_copy(const Device& device, std::uint64_t frame_bytes, std::uint64_t frames,
                        std::uint32_t streams) {
  return by_copies(device, Words{}, frame_bytes, frames, {.streams = streams}, Doubling{});
}
double chain_of_copies(const Device& device, std::uint64_t frame_bytes, std::uint64_t frames, std::uint32_t n,
                       const CopyPlan& plan) {
  const auto by = [&](const auto&... kernels) {
    return by_copies(device, Words{1u << n}, frame_bytes, frames, plan, kernels...);
  };
  constexpr Doubling kDouble;
  switch (n) {
    case 1:
      return by(kDouble);
    case 2:
      return by(kDouble, kDouble);
    case 3:
      return by(kDouble, kDouble, kDouble);
    default:
      return by(kDouble, kDouble, kDouble, kDouble);
  }
}
double kernel_over_managed(const Device& device, std::uint64_t frame_bytes, std::uint64_t frames) {
  return over_managed(device, Words{}, frame_bytes, frames, Doubling{});
}

}  // namespace esker::bench
