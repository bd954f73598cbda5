// The tuning of progress kernels, as one value.
#pragma once

#include <cstdint>

#include <esker/device/platform.hpp>

namespace esker::gpu {

/// What every progress kernel, every launch beside one, and the host that starts them agree on.
struct ProgressPolicy {
  static constexpr std::uint32_t kGroupLanes = 256;
  /// Rounds in which a wave applies and then sends, while it finds something.
  static constexpr std::uint32_t kRounds = 8;
  /// Batches of a wave's width, out of the handlers' queues, in a round.
  static constexpr std::uint32_t kBatches = 16;
  /// Polls of a peer's mailbox, or of the host's queue, before it gives up.
  static constexpr std::uint32_t kPolls = 64;
  /// Blocks of a group's pool: its handlers do not wait for one.
  static constexpr std::uint32_t kLeastBlocks = 4;
  /// Scratchpad of a group's pool, which every kernel leaves free. With it a group of a progress kernel takes
  /// a third of the 64 KiB that a processor has at least.
  static constexpr std::uint32_t kPoolBytes = 10 << 10;
};
static_assert(ProgressPolicy::kGroupLanes % 64 == 0, "whole waves of any width");

/// What one progress kernel is started with.
struct ProgressShape {
  std::uint32_t groups;
  std::uint32_t pool_bytes;  // of a group, for what its handlers send
};

}  // namespace esker::gpu
