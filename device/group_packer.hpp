// Auto-grouping: a group's messages gather in scratchpad, and the lane that completes a package sends it.
#pragma once

#include <cstdint>
#include <esker/device/group.hpp>
#include <esker/device/group_blocks.hpp>
#include <esker/device/lane_group.hpp>
#include <esker/device/packing.hpp>
#include <type_traits>

namespace esker {

ESKER_PASS_BEGIN

/// The packer of a group whose packages all go to one sink: election per group without a group barrier, and
/// the default (the second layer of HiWayLib, section 3.4).
///
/// State.    One bin and two blocks of `BlockWords` words (GroupBlocks): one fills while the other is sent.
/// Contract. A handle for each lane; construction is collective over the group, before it diverges. Then any
///           lane, in any branch, appends. Each lane calls close() as the last thing it does; the last one to
///           leave sends what is left.
/// Ordering. [left] everything that a lane has appended  happens before  the last lane's look at the open
///           block (acq_rel add to `leavers`). The rest is GroupBlocks'.
/// Progress. A lane waits in two places, and in neither does another lane need anything from it:
///   - for a block: it has taken no column that it has not written;
///   - with a complete block, for a queue slot: it waits for the outside, holds one ticket, and gathers no
///   more.
/// So tickets are never held while messages gather, and the block that a lane waits for is being copied by
/// lanes that wait for the outside at most. On hardware whose waves run in lock step, a diverged part of a
/// wave runs append() from beginning to end before another part runs, because append() diverges only where
/// the leader acts for the converged lanes: those that send a block are then always another wave's, which the
/// hardware runs on.
template <class S, std::uint32_t BlockWords = 512>
class GroupPacker {
  static_assert(Sink<S>);
  static constexpr std::uint32_t kBlocks = 2;
  using Blocks = GroupBlocks<1, kBlocks>;
  static_assert(BlockWords <= Blocks::kMostColumns);

 public:
  using Package = typename Blocks::Block;

  ESKER_HD GroupPacker(GroupLane& lane, S& sink)
      : lane_{&lane}, sink_{&sink}, shared_{&lane.scratch<Shared>()} {}

  template <std::uint32_t Words>
  ESKER_HD void append(std::uint32_t command, const std::uint64_t (&words)[Words]) {
    static_assert(Words <= BlockWords);
    auto active = lane_->coalesced();
    Blocks& blocks = shared_->blocks;
    const auto attempt =
        blocks.try_append(pool(), 0, command, std::integral_constant<std::uint32_t, Words>{}, words);
    if (!active.any(!attempt.is_over())) [[likely]]
      return;
    const auto most_columns = [this](std::uint32_t, std::uint32_t width) { return sink_->columns(width); };
    (void)blocks.append_slowly(
        pool(), active, 0, command, Words, words, attempt, most_columns,
        [&](std::uint32_t block) { flush_all(active, block); },
        [&](std::uint32_t polls) {
          // All together: one that went on alone could complete a block, and flush it only with the others.
          lane_->await("an open package", [&] { return active.any(blocks.was_ready(0)); });
          return polls;
        });
  }

  /// The lane sends no more. The last lane of the group to say so sends what is left.
  ESKER_HD void close() {
    auto active = lane_->coalesced();
    const Position mine = active.position_among(true);
    std::uint32_t block = Blocks::kNone;
    if (mine.index + 1 == mine.total &&
        shared_->leavers.fetch_add_acq_rel(mine.total) + mine.total == lane_->group_lanes()) {  // [left]
      block = shared_->blocks.close(0);
    }
    flush_all(active, block);
  }

 private:
  // Zeroed: nothing is open.
  struct Shared {
    Blocks blocks;
    GroupAtomic<std::uint32_t> leavers;
    alignas(16) std::uint64_t pool[kBlocks * BlockWords];
  };
  struct Pool {
    std::uint64_t* all;
    ESKER_HD std::uint64_t* words(std::uint32_t block) const { return all + block * BlockWords; }
    ESKER_HD static constexpr std::uint32_t block_words() { return BlockWords; }
  };
  ESKER_HD Pool pool() const { return {shared_->pool}; }

  /// The blocks that lanes of the wave have completed, one after the other.
  template <class ActiveLanes>
  ESKER_HD void flush_all(ActiveLanes& active, std::uint32_t complete) {
    while (active.any(complete != Blocks::kNone)) {
      const std::uint32_t next = active.of_first(complete != Blocks::kNone, complete);
      flush(active, next);
      if (complete == next) complete = Blocks::kNone;
    }
  }

  template <class ActiveLanes>
  ESKER_HD void flush(ActiveLanes& active, std::uint32_t index) {
    Blocks& blocks = shared_->blocks;
    const Position mine = active.position_among(true);
    const bool leads = mine.index + 1 == mine.total;
    active.sync();  // what the lane that completed the block acquired, the others may use
    const Package& block = blocks.block(index);
    const std::uint32_t command = block.command, width = block.width;
    if (Blocks::is_empty(block)) {
      active.sync();
      if (leads) blocks.release(index);
      return;
    }
    std::uint64_t ticket = 0;
    if (leads) {
      ticket = sink_->reserve(1);
      while (!sink_->was_empty(ticket)) sink_->pause(*lane_);
    }
    ticket = active.of_leader(ticket);
    active.sync();  // what the leader acquired, the others may use
    const std::uint32_t count = blocks.copy(pool(), active, mine, index,
                                            [&](std::uint32_t r) { return sink_->row(ticket, width, r); });
    if (leads) {
      sink_->publish(ticket, command, width, count);  // first: later tickets wait for it
      blocks.release(index);
    }
  }

  GroupLane* lane_;
  S* sink_;
  Shared* shared_;
};

ESKER_PASS_END

}  // namespace esker
