// The scratchpad of a group's outbox on a GPU: its open packages, counters, and what its lanes tell each
// other.
#pragma once

#include <cstdint>
#include <esker/device/atomic.hpp>
#include <esker/device/group_blocks.hpp>
#include <esker/device/hash.hpp>
#include <esker/net/gpu/pe_state.hpp>

#if defined(ESKER_ON_GPU)

namespace esker::gpu {

inline constexpr std::uint32_t kMaxBins = kMaxLinks + 1;  // the links, and the host
inline constexpr std::uint32_t kNoBin = kMaxBins;         // of a lane that has nothing to send

// Words for a group's open packages. Where the user shapes the groups, and may want scratchpad as well:
inline constexpr std::uint32_t kSmallPool = 1024;
// Where Esker shapes them: as many as the launch lends, which passes the number to begin().
inline constexpr std::uint32_t kLentPool = 0;

/// Another for each wave: waves poll slots in different places.
ESKER_HD inline std::uint32_t hash_seed_of(const GroupLane& lane) {
  return hash32<24>(static_cast<std::uint32_t>(lane.group_id() * kMaxWaves) +
                    GroupLane::wave_of(lane.lane()));
}

/// Zeroed, but for what begin() writes.
template <std::uint32_t PoolWords>
struct OutboxState {
  using Blocks = GroupBlocks<kMaxBins, kMostBlocks>;
  Blocks blocks;
  std::uint32_t block_words;
  GroupAtomic<std::uint32_t> leavers;
  GroupAtomic<std::uint32_t> pending;    // a bit a block: of a progress kernel, complete and to be flushed
  GroupAtomic<std::uint32_t> blocked;    // of a progress kernel: it found no space for what it has taken
  GroupAtomic<std::uint32_t> abandoned;  // what finds no space is dropped
  std::uint32_t group_lanes;
  bool reserved;              // a part of each mailbox is for progress kernels, and this is none
  std::uint64_t applied;      // messages that lanes, and handlers, have applied themselves
  std::uint64_t direct;       // of them, those in peers' heaps
  std::uint64_t by_handlers;  // messages that handlers have sent
  alignas(16) std::uint64_t pool[PoolWords == kLentPool ? 2 : PoolWords];

  ESKER_HD static OutboxState& here() { return GroupLane::scratch_of<OutboxState>(); }

  /// The blocks' memory.
  ESKER_HD std::uint64_t* words(std::uint32_t block) {
    std::uint64_t* all = pool;
    if constexpr (PoolWords == kLentPool) all = GroupLane::lent_scratch();
    return all + block * block_words;
  }
  struct Pool {
    ESKER_HD std::uint64_t* words(std::uint32_t block) const { return here().words(block); }
    ESKER_HD std::uint32_t block_words() const { return here().block_words; }
  };

  /// With so many words of pool. One lane, before others use it.
  ESKER_HD void begin(const PeState& pe_state, std::uint32_t lanes, std::uint32_t pool_words,
                      bool in_progress_kernel) {
    // Packages cost by the package, so blocks are large rather than many.
    const std::uint32_t least =
        blocks_for(pe_state.bins(), 2, in_progress_kernel ? ProgressPolicy::kLeastBlocks : kLeastBlocks);
    const std::uint32_t most = blocks_for(pe_state.bins(), 4);
    const std::uint32_t whole = pool_words / Mailbox::kPayloadWords;
    const std::uint32_t count = whole < least ? least : whole > most ? most : whole;
    const std::uint32_t even = pool_words / count / 16 * 16;
    block_words = even < Mailbox::kPayloadWords ? even : Mailbox::kPayloadWords;
    blocks.begin(count);
    group_lanes = lanes;
    reserved = !in_progress_kernel && pe_state.has_handlers();
  }
};

}  // namespace esker::gpu

#endif
