// What copies are to have brought.
#include <stdexcept>

#include <fmt/format.h>

#include "bench.hpp"

namespace esker::bench {

void fill(const Device& device, std::byte* at, std::size_t bytes, std::uint32_t seed) {
  std::vector<std::byte> pattern(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    pattern[i] = static_cast<std::byte>((i * 2654435761u >> 13) + 38 * seed) | std::byte{1};
  device.copy(at, pattern.data(), bytes);
}

void verify(std::span<const PlacedCopy> copies, const std::function<void()>& run, const std::string& what) {
  for (const auto& [device, copy] : copies) {
    const std::vector<std::byte> zeros(copy.bytes);
    device.copy(copy.to, zeros.data(), copy.bytes);
  }
  run();
  for (const auto& [device, copy] : copies) {
    std::vector<std::byte> sent(copy.bytes), got(copy.bytes);
    device.copy(sent.data(), copy.from, copy.bytes);
    device.copy(got.data(), copy.to, copy.bytes);
    if (sent == std::vector<std::byte>(copy.bytes))
      throw std::runtime_error(fmt::format("{}: nothing but zeros is copied, which verifies nothing", what));
    if (sent != got) throw std::runtime_error(fmt::format("{}: {} bytes came wrong", what, copy.bytes));
  }
}

}  // namespace esker::bench
