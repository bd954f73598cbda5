// Who may write where in a group's open package, in one word.
#pragma once

#include <cstdint>
#include <esker/device/platform.hpp>

namespace esker::detail {

/// State. Which generation of the package is open, for which command and width, how many columns are claimed,
/// and whether it is full. A claim is one compare-exchange of it.
struct PackageGate {
  static constexpr std::uint32_t kMaxWords = 63, kMaxColumns = 4095, kGenerations = 1u << 13;
  std::uint32_t command, words, claimed, full, generation;

  ESKER_HD static PackageGate unpack(std::uint64_t word) {
    const auto high = static_cast<std::uint32_t>(word >> 32);
    return {static_cast<std::uint32_t>(word), high & 63, high >> 6 & 4095, high >> 18 & 1, high >> 19};
  }
  ESKER_HD std::uint64_t pack() const {
    const std::uint32_t high = words | claimed << 6 | full << 18 | generation << 19;
    return std::uint64_t{high} << 32 | command;
  }
};

}  // namespace esker::detail
