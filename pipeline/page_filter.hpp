// A Bloom filter in blocks of 32 bytes: a lookup reads one block (F. Putze, P. Sanders, J. Singler, Cache-,
// hash- and space-efficient Bloom filters; the split blocks are Parquet's).
#pragma once

#include <cstdint>

#include <esker/device/hash.hpp>
#include <esker/device/platform.hpp>

namespace esker::pipeline {

/// Bits of one block: a value sets one in each word.
struct alignas(32) FilterBlock {
  static constexpr std::uint32_t kWords = 8;
  std::uint32_t words[kWords];
};

/// Where a value is in a filter.
class FilterPlace {
 public:
  ESKER_HD explicit FilterPlace(std::uint64_t value) {
    std::uint64_t hash = value * kGolden64;
    hash = (hash ^ hash >> 32) * kSecondFactor;
    upper_ = static_cast<std::uint32_t>(hash >> 32);
    lower_ = static_cast<std::uint32_t>(hash ^ hash >> 32);
  }

  /// Its block, of so many.
  ESKER_HD std::uint32_t block(std::uint32_t blocks) const {
    return static_cast<std::uint32_t>(std::uint64_t{upper_} * blocks >> 32);
  }
  /// Host, before any lookup.
  void add_to(FilterBlock& block) const {
    for (std::uint32_t w = 0; w < FilterBlock::kWords; ++w) block.words[w] |= bit(w);
  }
  /// False: it has not been added.
  ESKER_HD bool may_be_in(const FilterBlock& block) const {
    const FilterBlock words = block;  // in one or two loads
    bool all = true;
    for (std::uint32_t w = 0; w < FilterBlock::kWords; ++w) all = all && (words.words[w] & bit(w)) != 0;
    return all;
  }

 private:
  static constexpr std::uint64_t kSecondFactor = 0xc2b2ae3d27d4eb4f;  // odd, with its bits well mixed

  ESKER_HD std::uint32_t bit(std::uint32_t word) const {
    constexpr std::uint32_t kFactors[FilterBlock::kWords] = {0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
                                                             0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};
    return 1u << (lower_ * kFactors[word] >> 27);
  }

  std::uint32_t upper_, lower_;
};

}  // namespace esker::pipeline
