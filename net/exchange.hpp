// Bytes that PEs move together: what a transport does by a collective of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace esker {

/// One collective movement of bytes.
///
/// Contract. PEs agree on kind, root and block_bytes, and on what each gives to each, before they begin: a
///           transport compares nothing. Whoever waits for it and the transport own it together, so that
///           what a network may still touch outlives a call that gives up.
struct Exchange {
  enum class Kind : std::uint8_t {
    kBroadcast,  // the root's `send` to the `receive` of the others
    kGather,     // every PE's `send`, one after the other, to the root's `receive`
    kAllGather,  // the same, to every PE's
    kScatter,    // the root's `send`, a block a PE, to every PE's `receive`
    kAllToAll,   // of `send` the bytes for each PE, one after the other, to their place in its `receive`
  };
  /// Of `send`, and of `receive`: MPI counts by int.
  static constexpr std::size_t kMostBytes = std::size_t{1} << 30;

  Kind kind = Kind::kBroadcast;
  std::uint32_t root = 0;
  std::size_t block_bytes = 0;                           // all but kAllToAll: of each PE
  std::vector<std::uint32_t> send_bytes, receive_bytes;  // kAllToAll: by PE
  std::vector<std::byte> send, receive;                  // at least as large as is needed

  /// Where the bytes for, or from, a PE begin.
  static std::size_t start_of(const std::vector<std::uint32_t>& bytes, std::uint32_t pe) {
    std::size_t at = 0;
    for (std::uint32_t i = 0; i < pe; ++i) at += bytes[i];
    return at;
  }
};

}  // namespace esker
