// The open packages of a group's lanes, in scratchpad: blocks that lanes fill without a leader.
#pragma once

#include <bit>
#include <cstdint>
#include <esker/device/atomic.hpp>
#include <esker/device/group.hpp>
#include <esker/device/packing.hpp>

namespace esker {

ESKER_PASS_BEGIN

/// Open packages of a group: at most one for each of `Bins` bins, out of at most `Blocks` blocks.
///
/// State. A bin has one open block, for one command, or none. A lane takes a column with one subtraction from
/// the bin's word; lanes need no leader, so it costs the same in any branch. The lane that adds the last
/// column to `done` has completed the block: it flushes it, or passes that on, and calls release(). A lane
/// that finds no column left opens a block, if one is free, and takes its first; a lane with another command
/// takes all columns that are left, so that a block is opened for its own. Where there are more blocks than
/// bins, one is free or being sent. Zeroed memory is the initial state: every bin closed, all blocks free.
///
/// Contract. A `Pool` is the blocks' memory: words(block), of block_words() words each. A lane appends by
/// try_append(), and, where that is not over, by append_slowly(), which waits. A block stays with its bin
/// while a column of it is taken and not done, so a lane that has a column may read the block. A lane that
/// looks at a bin, and takes a column of a later opening, may find another command there: its column is a
/// void column, which copy() leaves out.
///
/// Ordering. All pairs are about scratchpad alone. On a GPU they are scratch_fence() and relaxed atomics,
/// since a release for each message would wait for the updates of memory that its lane has under way.
/// - [open] what the opener writes into the block happens before what a lane that takes a column reads there.
/// - [done] the words of all columns happen before the flush's reads.
/// - [sent] the flush's reads happen before the next opening of the block.
///
/// Progress. No call waits. Whoever opens a block has a column of it, so each opening brings a message on its
/// way: lanes with different commands close each other's blocks, but not before those hold something.
///
/// AtomicWord is a parameter so that a test can weaken one operation and show that it was needed.
template <std::uint32_t Bins, std::uint32_t Blocks, template <class> class AtomicWord = GroupAtomic>
class GroupBlocks {
  static_assert(Blocks >= 2 && Blocks <= 32);

  using Word = AtomicWord<std::uint32_t>;

 public:
  struct Block : OpenPackage {
    std::uint32_t first;  // column that was given to a message; above 0 if it was closed early
    Word done;            // columns written or given up; all of them: complete
    Word voids;           // void columns
  };
  static constexpr std::uint32_t kNone = ~0u;  // in place of a block
  static constexpr std::uint32_t kMostColumns = 4095;

  /// What one try of a lane came to.
  struct Attempt {
    bool left;               // it still has its message
    std::uint32_t complete;  // the block that this lane has completed, or kNone
    std::uint32_t took;      // not 0: it has a column of a later opening than it had looked at
    ESKER_HD bool is_over() const { return !left && complete == kNone; }
  };

  /// With so many of the blocks. One lane, before others use it; without it there are all.
  ESKER_HD void begin(std::uint32_t blocks) { used_.store_relaxed(blocks == 32 ? 0 : ~0u << blocks); }
  ESKER_HD Block& block(std::uint32_t index) { return blocks_[index]; }

  /// The try that mostly succeeds: a column of an open block for this command. `Width` is a constant where it
  /// is known.
  template <class Pool, class Width>
  ESKER_HD Attempt try_append(const Pool& pool, std::uint32_t bin, std::uint32_t command, Width width,
                              const std::uint64_t* words) {
    const std::uint32_t seen = bins_[bin].load_acquire();  // [open]
    if (left_of(seen) <= kFull || command_of(block_of(seen)) != command) return {true, kNone, 0};
    const std::uint32_t took = bins_[bin].fetch_add_relaxed(~0u);
    if (left_of(took) <= kFull) return {true, kNone, 0};
    if (is_another_opening(took, seen)) return {true, kNone, took};
    return {false, write(pool, took, width, words, false), 0};
  }

  /// The rest of a try that has a column of a later opening.
  template <class Pool, class Width>
  ESKER_HD Attempt write_there(const Pool& pool, std::uint32_t bin, std::uint32_t command, Width width,
                               const std::uint64_t* words, std::uint32_t took) {
    (void)bins_[bin].load_acquire();  // [open]
    Block& block = blocks_[block_of(took)];
    if (block.command == command) return {false, write(pool, took, width, words, false), 0};
    block.voids.fetch_add_relaxed(1);
    return {true, write(pool, took, std::uint32_t{1}, words, true), 0};
  }

  /// Where a try finds no open block for this command: opens one, of at most most_columns(bin, width)
  /// columns, with the message in it; or closes the one of another command.
  template <class Pool, class Width, class MostColumns>
  ESKER_HD Attempt make_way(const Pool& pool, std::uint32_t bin, std::uint32_t command, Width width,
                            const std::uint64_t* words, const MostColumns& most_columns) {
    const std::uint32_t seen = bins_[bin].load_acquire();  // [open]
    if (left_of(seen) <= kFull) {
      const std::uint32_t took = try_open(pool, bin, seen, command, width, most_columns);
      if (took != 0) return {false, write(pool, took, width, words, false), 0};
    } else if (command_of(block_of(seen)) != command) {
      return {true, close(bin, seen), 0};
    }
    return {true, kNone, 0};
  }

  /// After a try that is not over, for all `active` lanes of the wave together: flush(block) for each block
  /// that one of them completes, and wait(polls) between tries, which takes and returns how often nothing was
  /// found. Returns whether a block was flushed.
  template <class Pool, class ActiveLanes, class MostColumns, class Flush, class Wait>
  ESKER_HD bool append_slowly(const Pool& pool, const ActiveLanes& active, std::uint32_t bin,
                              std::uint32_t command, std::uint32_t width, const std::uint64_t* words,
                              Attempt attempt, const MostColumns& most_columns, const Flush& flush,
                              const Wait& wait) {
    bool flushed = false;
    for (std::uint32_t polls = 0;;) {
      if (attempt.took != 0) attempt = write_there(pool, bin, command, width, words, attempt.took);
      if (!active.any(!attempt.is_over())) return flushed;
      if (active.any(attempt.complete != kNone)) {
        flush(attempt.complete);
        attempt.complete = kNone;
        flushed = true;
      } else if (polls < 2) {
        ++polls;
      } else {
        polls = wait(polls);
      }
      if (!attempt.left) continue;
      attempt = make_way(pool, bin, command, width, words, most_columns);
      if (attempt.left && attempt.complete == kNone) attempt = try_append(pool, bin, command, width, words);
    }
  }

  /// Closes what is open in the bin. Returns the block if all its columns are done.
  ESKER_HD std::uint32_t close(std::uint32_t bin) {
    const std::uint32_t seen = bins_[bin].load_acquire();  // [open]
    return left_of(seen) > kFull ? close(bin, seen) : kNone;
  }

  /// Whether a try is worth it: the bin has an open block, or there is a free one for it.
  ESKER_HD bool was_ready(std::uint32_t bin) const {
    return left_of(bins_[bin].load_relaxed()) > kFull || free_of(used_.load_relaxed()) != 0;
  }

  /// Of a complete block: the columns that lanes have taken, and whether they are all void.
  ESKER_HD static std::uint32_t columns_of(const Block& block) { return block.columns - block.first; }
  ESKER_HD static bool is_empty(const Block& block) {
    return columns_of(block) == block.voids.load_relaxed();
  }

  /// Copies a complete block's messages: word r of message i goes to row(r)[i]. Returns how many there are.
  /// Collective over the active lanes, of which this one is `mine`.
  template <class Pool, class ActiveLanes, class Row>
  ESKER_HD std::uint32_t copy(const Pool& pool, const ActiveLanes& active, const Position& mine,
                              std::uint32_t index, const Row& row) {
    const Block& block = blocks_[index];
    const std::uint32_t width = block.width, voids = block.voids.load_relaxed();
    const std::uint64_t* const words = pool.words(index) + block.first;
    std::uint32_t count = columns_of(block);
    if (voids != 0) {
      std::uint32_t kept = 0;
      for (std::uint32_t from = 0; from < count; from += mine.total) {
        const std::uint32_t c = from + mine.index;
        const bool keeps = c < count && words[c] != kVoidColumn;
        const Position place = active.position_among(keeps);
        for (std::uint32_t r = 0; keeps && r < width; ++r) row(r)[kept + place.index] = words[block.at(r, c)];
        kept += place.total;
      }
      count = kept;
    } else {
      const std::uint32_t columns = block.columns;  // read once: what is stored below might be the block
      for (std::uint32_t r = 0; r < width; ++r) {
        const std::uint64_t* const from = words + r * columns;
        std::uint64_t* const to = row(r);
#if defined(ESKER_ON_GPU)
#pragma unroll 4
#endif
        for (std::uint32_t c = mine.index; c < count; c += mine.total) to[c] = from[c];
      }
    }
    active.sync();
    return count;
  }

  /// The block may be opened again.
  ESKER_HD void release(std::uint32_t index) {
    release_add(used_, 0u - (1u << index));  // [sent]
  }

 private:
  // A bin's word is  opening:10 | block:6 | columns left, above kFull:16.  Columns are given out from the
  // last to the first. 0: nothing was ever opened.
  static constexpr std::uint32_t kFull = 1u << 13;     // lanes that come too late subtract from it
  static constexpr std::uint32_t kOpening = 1u << 12;  // the same while a lane opens a block
  static_assert(kMostColumns + kFull < 1u << 16);

  ESKER_HD static std::uint32_t left_of(std::uint32_t bin) { return bin & 0xffff; }
  ESKER_HD static std::uint32_t block_of(std::uint32_t bin) { return bin >> 16 & 63; }
  ESKER_HD static bool is_another_opening(std::uint32_t bin, std::uint32_t seen) {
    return (bin ^ seen) >> 16 != 0;
  }
  ESKER_HD static std::uint32_t free_of(std::uint32_t used) { return ~used & ~0u >> (32 - Blocks); }

  // Of a block that this lane has no column of, which another may open for another command just now.
  ESKER_HD std::uint32_t command_of(std::uint32_t index) const {
    static_assert(sizeof(GroupAtomic<std::uint32_t>) == sizeof(std::uint32_t));
    return reinterpret_cast<const GroupAtomic<std::uint32_t>&>(blocks_[index].command).load_relaxed();
  }
  ESKER_HD void set_command(std::uint32_t index, std::uint32_t command) {
    reinterpret_cast<GroupAtomic<std::uint32_t>&>(blocks_[index].command).store_relaxed(command);
  }

  // Where there is no scratch_fence(), the atomics order.
  template <class L = GroupLane>
  ESKER_HD static void release_add(Word& word, std::uint32_t amount) {
    if constexpr (requires { L::scratch_fence(); }) {
      L::scratch_fence();
      (void)word.fetch_add_relaxed(amount);
    } else {
      (void)word.fetch_add_acq_rel(amount);
    }
  }
  template <class L = GroupLane>
  ESKER_HD static std::uint32_t add_and_fetch(Word& word, std::uint32_t amount) {
    if constexpr (requires { L::scratch_fence(); }) {
      L::scratch_fence();
      const std::uint32_t sum = word.fetch_add_relaxed(amount) + amount;
      L::scratch_fence();
      return sum;
    } else {
      return word.fetch_add_acq_rel(amount) + amount;
    }
  }
  template <class L = GroupLane>
  ESKER_HD static bool acquire_exchange(Word& word, std::uint32_t& seen, std::uint32_t desired) {
    if constexpr (requires { L::scratch_fence(); }) {
      const bool is_done = word.compare_exchange_relaxed(seen, desired);
      L::scratch_fence();
      return is_done;
    } else {
      return word.compare_exchange_acquire(seen, desired);
    }
  }
  template <class L = GroupLane>
  ESKER_HD static void release_store(Word& word, std::uint32_t value) {
    if constexpr (requires { L::scratch_fence(); }) {
      L::scratch_fence();
      word.store_relaxed(value);
    } else {
      word.store_release(value);
    }
  }
  template <class L = GroupLane>
  ESKER_HD static std::uint32_t lowest_bit(std::uint32_t word) {
    if constexpr (requires { L::lowest_bit(word); }) {
      return L::lowest_bit(word);
    } else {
      return static_cast<std::uint32_t>(std::countr_zero(word));
    }
  }

  /// `columns` more of the block are done. Returns the block if it is complete.
  ESKER_HD static std::uint32_t finish(Block& block, std::uint32_t all, std::uint32_t columns,
                                       std::uint32_t index) {
    return add_and_fetch(block.done, columns) == all ? index : kNone;  // [done]
  }

  /// Takes the columns that were `seen` left. Returns the block if the others are done.
  ESKER_HD std::uint32_t close(std::uint32_t bin, std::uint32_t seen) {
    const std::uint32_t open = seen;
    if (!acquire_exchange(bins_[bin], seen, (seen & ~0xffffu) | kFull)) return kNone;  // [open]
    Block& block = blocks_[block_of(open)];
    block.first = left_of(open) - kFull;
    return finish(block, block.columns, block.first, block_of(open));
  }

  /// Opens a block if one is free, and takes a column of it: else lanes with different commands could close
  /// each other's blocks for ever before anyone writes. Returns what `took` is in a try, or 0.
  template <class Pool, class MostColumns>
  ESKER_HD std::uint32_t try_open(const Pool& pool, std::uint32_t bin, std::uint32_t seen,
                                  std::uint32_t command, std::uint32_t width,
                                  const MostColumns& most_columns) {
    std::uint32_t used = used_.load_relaxed();
    const std::uint32_t opening = seen & ~0xffffu;
    if (free_of(used) == 0 || (left_of(seen) <= kOpening && seen != 0)) return 0;
    if (!bins_[bin].compare_exchange_relaxed(seen, opening | kOpening)) return 0;
    std::uint32_t index = kNone;
    while (free_of(used) != 0) {
      const std::uint32_t lowest = lowest_bit(free_of(used));
      if (acquire_exchange(used_, used, used | 1u << lowest)) {  // [sent]
        index = lowest;
        break;
      }
    }
    if (index == kNone) {
      bins_[bin].store_relaxed(opening | kFull);
      return 0;
    }
    const std::uint32_t fit = pool.block_words() / width, most = most_columns(bin, width);
    Block& block = blocks_[index];
    set_command(index, command);
    block.width = static_cast<std::uint16_t>(width);
    block.bin = static_cast<std::uint16_t>(bin);
    block.columns = fit < most ? fit : most;
    block.first = 0;
    block.done.store_relaxed(0);
    block.voids.store_relaxed(0);
    const std::uint32_t took = ((opening >> 22) + 1) << 22 | index << 16 | (kFull + block.columns);
    release_store(bins_[bin], took - 1);  // [open]
    return took;
  }

  /// Writes the message, or that there is none, into the column that `took` stands for. Returns the block
  /// that this lane has completed.
  template <class Pool, class Width>
  ESKER_HD std::uint32_t write(const Pool& pool, std::uint32_t took, Width width, const std::uint64_t* words,
                               bool is_void) {
    const std::uint32_t index = block_of(took);
    Block& block = blocks_[index];
    const std::uint32_t columns = block.columns;
    std::uint64_t* const to = pool.words(index) + (left_of(took) - kFull - 1);
    to[0] = is_void ? kVoidColumn : words[0];
    for (std::uint32_t r = 1; r < width; ++r) to[r * columns] = words[r];
    return finish(block, columns, 1, index);
  }

  Word bins_[Bins];
  Word used_;  // a bit a block: open, or being sent
  Block blocks_[Blocks];
};

ESKER_PASS_END

}  // namespace esker
