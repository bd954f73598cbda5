// Where a block's bytes lie at one of its ends: in pieces, or in one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace esker {

/// Pieces of `piece_bytes` whose starts are `stride` apart. One piece is as long as the block.
struct BlockLayout {
  std::uint64_t piece_bytes;
  std::uint64_t stride;

  /// Calls `use(offset, at, length)` for each stretch of the block's bytes [first, first + bytes): `offset`
  /// from the first piece's start, `at` from `first`.
  template <class Use>
  void for_each_stretch(std::uint64_t first, std::uint64_t bytes, Use use) const {
    std::uint64_t piece = first / piece_bytes, within = first % piece_bytes;
    for (std::uint64_t at = 0; at < bytes; ++piece, within = 0) {
      const std::uint64_t length = std::min(piece_bytes - within, bytes - at);
      use(piece * stride + within, at, length);
      at += length;
    }
  }
  /// From the first piece's start to the last one's end, of a block of `bytes` > 0; 2^64 - 1 if that is too
  /// long to say.
  std::uint64_t extent(std::uint64_t bytes) const {
    const std::uint64_t gaps = bytes / piece_bytes - 1;
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
    if (gaps != 0 && stride > (kMost - piece_bytes) / gaps) return kMost;
    return gaps * stride + piece_bytes;
  }
  /// A block of `bytes` at `offset` lies in a heap of so many bytes.
  bool is_inside(std::uint64_t offset, std::uint64_t bytes, std::uint64_t heap_bytes) const {
    const std::uint64_t whole = extent(bytes);
    return whole <= heap_bytes && offset <= heap_bytes - whole;
  }
};

}  // namespace esker
