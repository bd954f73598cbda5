// How large a group's pool of open packages is (net/gpu/outbox.hpp).
#pragma once

#include <cstdint>

#include <esker/device/platform.hpp>
#include <esker/queue/mailbox.hpp>

namespace esker::gpu {

/// Blocks of a group's pool: enough that some are sent while others fill.
inline constexpr std::uint32_t kLeastBlocks = 8, kMostBlocks = 32;

/// Blocks for `bins` destinations, with `a_bin` for each.
ESKER_HD constexpr std::uint32_t blocks_for(std::uint32_t bins, std::uint32_t a_bin,
                                            std::uint32_t least = kLeastBlocks) {
  const std::uint32_t blocks = bins * a_bin;
  return blocks < least ? least : blocks > kMostBlocks ? kMostBlocks : blocks;
}
/// The most that a pool for `bins` destinations makes use of.
constexpr std::uint32_t most_pool_bytes(std::uint32_t bins) {
  return bins == 0 ? kLeastBlocks * 128 : blocks_for(bins, 4) * Mailbox::kPayloadWords * 8;
}

}  // namespace esker::gpu
