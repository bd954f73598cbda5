// Stages 1 to 3 on the device: a group keeps an open package for each destination that it reaches directly,
// in scratchpad, and whoever completes one writes it into the peer's mailbox, or into the host's queue.
#pragma once

#include <cstdint>
#include <esker/device/group.hpp>
#include <esker/net/gpu/apply.hpp>
#include <esker/net/gpu/pe_state.hpp>

#if defined(ESKER_ON_GPU)

namespace esker::gpu {

inline constexpr std::uint32_t kMaxBins = kMaxLinks + 1;  // the links, and the host
inline constexpr std::uint32_t kNoBin = kMaxBins;         // of a lane that has nothing to send

// Words for a group's open packages. Where the user shapes the groups, who may want scratchpad:
inline constexpr std::uint32_t kSmallPool = 1024;
// Where Esker does: as many as the launch lends, which says so to begin().
inline constexpr std::uint32_t kLentPool = 0;

/// For each wave another: waves look for slots in different places.
ESKER_HD inline std::uint32_t salt_of(const GroupLane& lane) {
  const auto wave = static_cast<std::uint32_t>(lane.group_id() * kMaxWaves) + GroupLane::wave_of(lane.lane());
  return wave * 0x9e3779b1u >> 8;  // neighbours far apart
}

/// After so many looks in vain a crew wakes the host, and sees whether it has gone; one of a progress kernel
/// gives up.
inline constexpr std::uint32_t kPollsUntilStarving = 256;

/// Puts a message of a handler, whose word r is words[r * stride], where it waits to be sent on: in this
/// wave's shard, or so many behind it. If there is no room the job ends, since a handler must not wait.
ESKER_HD inline void queue_message(const PeState& pe_state, std::uint32_t command, std::uint32_t width,
                                   const std::uint64_t* words, std::uint32_t stride,
                                   std::uint32_t shards_on = 0) {
  HandlerQueue queue = pe_state.handler_queue((handler_shard_here() + shards_on) % kHandlerShards);
  const std::uint64_t ticket = queue.reserve();
  if (!queue.was_empty(ticket)) {
    return report_fault(pe_state,
                        {Fault::kHandlersOutrun, pe_state.pe, 0, 1, 0, queue.slots(), 0, "a handler"});
  }
  for (std::uint32_t r = 0; r < width; ++r) queue.row(ticket, width, r)[0] = words[r * stride];
  queue.publish(ticket, command, width, 1);
}

/// Scratchpad of an outbox, zeroed.
template <std::uint32_t PoolWords>
struct OutboxState {
  /// A package that is open, or being sent. Word r of column c is at r * columns + c; columns are given out
  /// from the last to the first.
  struct Block {
    std::uint32_t command;
    std::uint16_t width;
    std::uint16_t bin;
    std::uint32_t columns;
    std::uint32_t first;                // column that was given to a message; above 0 if it was closed early
    GroupAtomic<std::uint32_t> done;    // columns written or given up; all of them: complete
    GroupAtomic<std::uint32_t> strays;  // columns written that hold no message
  };
  GroupAtomic<std::uint32_t> bins[kMaxBins];  // opening:10 | block:6 | columns left, above kFull:16
  GroupAtomic<std::uint32_t> free;            // a bit a block
  GroupAtomic<std::uint32_t> leavers;
  GroupAtomic<std::uint32_t> owed;  // a bit a block: of a progress kernel, to be sent, by whoever can wait
  std::uint32_t block_words;        // of the pool
  Block blocks[kMostBlocks];
  bool in_progress_kernel;
  bool reserved;                         // a part of each mailbox is for progress kernels, and this is none
  GroupAtomic<std::uint32_t> blocked;    // of a progress kernel: it found no room for what it has taken
  GroupAtomic<std::uint32_t> abandoned;  // what finds no room is dropped
  std::uint64_t applied;                 // messages that lanes, and handlers, have applied themselves
  std::uint64_t direct;                  // of them, those in peers' heaps
  std::uint64_t by_handlers;             // messages that handlers have sent
  alignas(16) std::uint64_t pool[PoolWords == kLentPool ? 2 : PoolWords];
};

/// What a group's lanes send, by destination.
///
/// Contract. begin() is collective over the group, before it diverges. Then any lane, in any branch, sends.
/// Each lane calls finish() as the last thing it does; the last one to leave sends what is left. A command
/// determines how many words its messages have.
///
/// State. A bin has one open block of the pool, for one command, or none. A lane takes a column with one
/// subtraction from the bin's word; lanes need no leader, so it costs the same in any branch. Whoever adds
/// the last column to `done` has the duty of sending the block and giving it back. A lane that finds no
/// column left opens a block, if one is free; a lane with another command takes all columns that are left, so
/// that a block is opened for its own. There are more blocks than bins, so one is free or being sent.
///
/// A block stays with its bin while a column of it is taken and not done, so who has a column may look at it.
/// A lane that looks at a bin, and takes a column after another opening, may find another command there:
/// its column is a stray, which the duty leaves out.
///
/// Ordering. [open] what the one who opens writes into the block happens before who takes a column looks.
/// [done] columns' words happen before the duty. [sent] the duty's reads happen before the next opening. All
/// three are about scratchpad alone (GroupLane::scratch_fence()): a release for each message would wait for
/// the updates of memory that its lane has under way.
///
/// Handlers, which must not wait and may hold an ownership block, leave their duties in `owed`; waves of the
/// progress kernel do them between packages.
///
/// Progress. No lane waits with a column that it has taken and not written: between the two it does nothing
/// that waits. In its duty a crew waits for a slot alone, holding what nobody else waits for in
/// turn, and applies arrivals meanwhile: two GPUs full of lanes that wait for each other's mailboxes empty
/// them. A progress kernel gives up after a while, since its peers' progress kernels of this moment may call
/// another handler: what handlers have sent goes into their queue. A quarter of each mailbox is for progress
/// kernels alone, where there are handlers, so that lanes' messages do not keep handlers' from arriving.
template <std::uint32_t PoolWords>
class GroupOutbox {
  using ActiveLanes = GroupLane::Coalesced;

 public:
  /// `salt` is salt_of() the lane.
  ESKER_HD explicit GroupOutbox(std::uint32_t salt) : salt_{salt} {}
  /// Once a group, collective, before any outbox of it sends. `pe_state` is the group's own copy.
  ESKER_HD static void begin(GroupLane& lane, const PeState& pe_state, std::uint32_t pool_words = PoolWords,
                             bool in_progress_kernel = false) {
    State& state = lane.scratch<State>();
    if (lane.lane() == 0) {
      // Packages cost by the package, so blocks are large rather than many.
      const std::uint32_t least =
          blocks_for(pe_state.bins(), 2, in_progress_kernel ? ProgressPolicy::kLeastBlocks : kLeastBlocks);
      const std::uint32_t most = blocks_for(pe_state.bins(), 4);
      const std::uint32_t whole = pool_words / Mailbox::kPayloadWords;
      const std::uint32_t blocks = whole < least ? least : whole > most ? most : whole;
      const std::uint32_t words = pool_words / blocks / 16 * 16;
      state.block_words = words < Mailbox::kPayloadWords ? words : Mailbox::kPayloadWords;
      state.free.store_relaxed(~0u >> (32 - blocks));
      state.in_progress_kernel = in_progress_kernel;
      state.reserved = !in_progress_kernel && pe_state.has_handlers();
      for (auto& bin : state.bins) bin.store_relaxed(kFull);
    }
    lane.group().sync();
  }

  /// Sends one message, or applies it at once: one for this PE, and among the first that this lane applies
  /// itself those for peers in reach (docs/design/messages-on-gpus.md). Returns whether this lane's crew has
  /// sent a package: then it may send on what handlers have sent. `Width` is a constant where it is known.
  template <class Width>
  ESKER_HD bool post(Command command, Width width, const std::uint64_t* words) {
    const PeState& pe_state = pe_state_here();
    std::uint32_t bin = pe_state.bin(static_cast<std::uint32_t>(words[0] >> kOffsetBits));
    std::byte* heap = nullptr;
    if (bin == kSelf || applied_ < pe_state.most_direct)
      heap = heap_in_reach(pe_state, bin, command.operation);
    if (heap != nullptr) {
      apply_own(pe_state, heap, command, words);
      ++applied_;
      if (bin != kSelf) count_direct();
      bin = kNoBin;
    } else {
      bin = package_for(pe_state, bin);
    }
    return send(bin, command.word(), width, words);
  }

  /// Of a handler, which must not wait: whether there was room for its message. A block that this completes
  /// is owed: send_owed().
  ESKER_HD static bool try_post(std::uint32_t bin, Command command, std::uint32_t width,
                                const std::uint64_t* words) {
    constexpr std::uint32_t kTries = 3;  // another command's block is closed, then one opened
    if (is_blocked()) return false;
    State& state = state_here();
    for (std::uint32_t tries = 0; tries < kTries; ++tries) {
      Try done = try_write(state, bin, command.word(), width, words);
      if (done.took != 0) done = write_there(state, bin, command.word(), width, words, done.took);
      if (done.left && done.duty == kNone) done.duty = make_way(state, bin, command.word(), width);
      if (done.duty != kNone) (void)state.owed.fetch_add_relaxed(1u << done.duty);
      if (!done.left) return true;
    }
    return false;
  }

  /// Sends what handlers have completed. Collective over a crew of a progress kernel that is in no handler.
  ESKER_HD static void send_owed(std::uint32_t salt, ActiveLanes active) {
    State& state = state_here();
    const bool leads = active.is_speaker();
    while (active.any(leads && state.owed.load_relaxed() != 0)) {
      std::uint32_t owed = state.owed.load_relaxed();
      const bool took = leads && owed != 0 && state.owed.compare_exchange_relaxed(owed, owed & (owed - 1));
      if (!active.any(took)) continue;
      GroupLane::scratch_fence();  // [done]
      do_duty(salt, active, active.of_first(took, GroupLane::lowest_bit(owed)));
    }
  }

  /// One of those that a lane has applied itself, in a peer's heap.
  ESKER_HD static void count_direct() { (void)counter(state_here().direct).fetch_add_relaxed(1); }
  /// Of what handlers have sent, `applied` they have applied themselves.
  ESKER_HD static void count_of_handlers(std::uint32_t sent, std::uint32_t applied) {
    (void)counter(state_here().by_handlers).fetch_add_relaxed(sent);
    if (applied > 0) (void)counter(state_here().applied).fetch_add_relaxed(applied);
  }

  /// What this outbox has applied at once counts from now on.
  ESKER_HD void count_applied() {
    if (applied_ > 0) counter(state_here().applied).fetch_add_relaxed(applied_);
    applied_ = 0;
  }

  /// Of a progress kernel: its group need not take more of what handlers have sent.
  ESKER_HD static bool is_blocked() { return state_here().blocked.load_relaxed() != 0; }

  ESKER_HD void finish(std::uint32_t group_lanes) {
    count_applied();
    leave(salt_, group_lanes);
  }

 private:
  using State = OutboxState<PoolWords>;
  using Block = typename State::Block;
  static constexpr std::uint32_t kNone = ~0u;          // in place of a command, and of a duty: a block
  static constexpr std::uint32_t kFull = 1u << 13;     // lanes that come too late subtract from it
  static constexpr std::uint32_t kOpening = 1u << 12;  // the same while a lane opens a block
  static constexpr std::uint64_t kStray = ~std::uint64_t{0} >> 1;  // in place of word 0; no message's
  static_assert(Mailbox::kPayloadWords + kFull < 1u << 16);

  ESKER_HD static State& state_here() { return GroupLane::scratch_of<State>(); }
  ESKER_HD static std::uint32_t left_of(std::uint32_t bin) { return bin & 0xffff; }
  ESKER_HD static std::uint32_t block_of(std::uint32_t bin) { return bin >> 16 & 63; }
  ESKER_HD static bool is_another_opening(std::uint32_t bin, std::uint32_t seen) {
    return (bin ^ seen) >> 16 != 0;
  }
  ESKER_HD static std::uint64_t* words_of(State& state, std::uint32_t block) {
    std::uint64_t* pool = state.pool;
    if constexpr (PoolWords == kLentPool) pool = GroupLane::lent_scratch();
    return pool + block * state.block_words;
  }

  /// `columns` more of the block are done. Returns the block if it is complete: the duty.
  ESKER_HD static std::uint32_t settle(Block& block, std::uint32_t all, std::uint32_t columns,
                                       std::uint32_t index) {
    GroupLane::scratch_fence();
    const std::uint32_t done = block.done.fetch_add_relaxed(columns) + columns;  // [done]
    GroupLane::scratch_fence();
    return done == all ? index : kNone;
  }

  /// The block may be opened again.
  ESKER_HD static void give_back(State& state, std::uint32_t index) {
    GroupLane::scratch_fence();
    (void)state.free.fetch_add_relaxed(1u << index);  // [sent]
  }

  /// Takes the columns that were `seen` left. Returns the duty if the others are done.
  ESKER_HD static std::uint32_t close(std::uint32_t b, std::uint32_t seen) {
    State& state = state_here();
    if (!state.bins[b].compare_exchange_relaxed(seen, (seen & ~0xffffu) | kFull)) return kNone;
    GroupLane::scratch_fence();
    Block& block = state.blocks[block_of(seen)];
    block.first = left_of(seen) - kFull;
    return settle(block, block.columns, block.first, block_of(seen));
  }

  /// Opens a block if one is free.
  ESKER_HD static void try_open(std::uint32_t b, std::uint32_t seen, std::uint32_t command,
                                std::uint32_t width) {
    State& state = state_here();
    std::uint32_t free = state.free.load_relaxed();
    const std::uint32_t opening = seen & ~0xffffu;
    if (free == 0 || left_of(seen) <= kOpening) return;
    if (!state.bins[b].compare_exchange_relaxed(seen, opening | kOpening)) return;
    while (free != 0 && !state.free.compare_exchange_relaxed(free, free & (free - 1))) {
    }  // [sent]
    GroupLane::scratch_fence();
    if (free == 0) {
      state.bins[b].store_relaxed(opening | kFull);
      return;
    }
    const std::uint32_t index = GroupLane::lowest_bit(free);
    std::uint32_t columns = state.block_words / width;
    if (b == pe_state_here().links) {
      const std::uint32_t fit = pe_state_here().host_queue.columns(width);
      columns = fit < columns ? fit : columns;
    }
    Block& block = state.blocks[index];
    block.command = command;
    block.width = static_cast<std::uint16_t>(width);
    block.bin = static_cast<std::uint16_t>(b);
    block.columns = columns;
    block.first = 0;
    block.done.store_relaxed(0);
    block.strays.store_relaxed(0);
    GroupLane::scratch_fence();
    state.bins[b].store_relaxed(((opening >> 22) + 1) << 22 | index << 16 | (kFull + columns));  // [open]
  }

  /// Writes the message, or that there is none, into the column that `took` stands for. Returns the duty that
  /// this lane has come to have.
  template <class Width>
  ESKER_HD static std::uint32_t write(State& state, std::uint32_t took, Width width,
                                      const std::uint64_t* words, bool stray) {
    const std::uint32_t index = block_of(took);
    Block& block = state.blocks[index];
    const std::uint32_t columns = block.columns;
    std::uint64_t* const at = words_of(state, index) + (left_of(took) - kFull - 1);
    at[0] = stray ? kStray : words[0];
    for (std::uint32_t r = 1; r < width; ++r) at[r * columns] = words[r];
    return settle(block, columns, 1, index);
  }

  /// What one try of a lane came to.
  struct Try {
    bool left;           // it still has its message
    std::uint32_t duty;  // or kNone
    std::uint32_t took;  // not 0: it has a column of a later opening than it had looked at
  };
  /// The try that mostly succeeds: a column of an open block for this command.
  template <class Width>
  ESKER_HD static Try try_write(State& state, std::uint32_t b, std::uint32_t command, Width width,
                                const std::uint64_t* words) {
    const std::uint32_t seen = state.bins[b].load_acquire();  // [open]
    if (left_of(seen) <= kFull || state.blocks[block_of(seen)].command != command) return {true, kNone, 0};
    const std::uint32_t took = state.bins[b].fetch_add_relaxed(~0u);
    if (left_of(took) <= kFull) return {true, kNone, 0};
    if (is_another_opening(took, seen)) return {true, kNone, took};
    return {false, write(state, took, width, words, false), 0};
  }

  /// The rest of a try that has a column of a later opening.
  template <class Width>
  ESKER_HD static Try write_there(State& state, std::uint32_t b, std::uint32_t command, Width width,
                                  const std::uint64_t* words, std::uint32_t took) {
    (void)state.bins[b].load_acquire();  // [open]
    Block& block = state.blocks[block_of(took)];
    const bool stray = block.command != command;
    if (!stray) return {false, write(state, took, width, words, false), 0};
    block.strays.fetch_add_relaxed(1);
    return {true, write(state, took, std::uint32_t{1}, words, true), 0};
  }
  /// Towards an open block for this command. Returns the duty that this lane has come to have.
  ESKER_HD static std::uint32_t make_way(State& state, std::uint32_t b, std::uint32_t command,
                                         std::uint32_t width) {
    const std::uint32_t seen = state.bins[b].load_acquire();  // [open]
    if (left_of(seen) <= kFull) {
      try_open(b, seen, command, width);
    } else if (state.blocks[block_of(seen)].command != command) {
      return close(b, seen);
    }
    return kNone;
  }

  template <class Width>
  ESKER_HD bool send(std::uint32_t bin, std::uint32_t command, Width width,
                     const std::uint64_t* words) const {
    const ActiveLanes active = GroupLane::coalesced();
    Try done{false, kNone, 0};
    if (bin != kNoBin) done = try_write(state_here(), bin, command, width, words);
    if (!active.any(done.left || done.duty != kNone)) [[likely]]
      return false;
    if constexpr (requires { Width::value; }) {
      std::uint64_t copy[Width::value];  // where nobody asks for its address, a message stays in registers
      for (std::uint32_t r = 0; r < width; ++r) copy[r] = words[r];
      return send_slowly(salt_, active, bin, command, width, copy, done);
    } else {
      return send_slowly(salt_, active, bin, command, width, words, done);
    }
  }

  /// The rest of it, if a lane of the crew has not got a column, or has a duty.
  ESKER_NOINLINE ESKER_HD static bool send_slowly(std::uint32_t salt, ActiveLanes active, std::uint32_t b,
                                                  std::uint32_t command, std::uint32_t width,
                                                  const std::uint64_t* words, Try done) {
    State& state = state_here();
    bool delivered = false;
    for (std::uint32_t looks = 0;;) {
      if (done.took != 0) done = write_there(state, b, command, width, words, done.took);
      if (!active.any(done.left || done.duty != kNone)) return delivered;
      if (active.any(done.duty != kNone)) {
        do_duties(salt, active, done.duty);
        done.duty = kNone;
        delivered = true;
      } else if (looks < 2) {
        ++looks;
      } else {
        looks = wait_step(salt, active, looks);
      }
      if (!done.left) continue;
      done.duty = make_way(state, b, command, width);
      if (done.duty == kNone) done = try_write(state, b, command, width, words);
    }
  }

  /// The duties of those lanes of the crew that have one, one after the other.
  ESKER_NOINLINE ESKER_HD static void do_duties(std::uint32_t salt, ActiveLanes active, std::uint32_t duty) {
    while (active.any(duty != kNone)) {
      const std::uint32_t next = active.of_first(duty != kNone, duty);
      do_duty(salt, active, next);
      if (duty == next) duty = kNone;
    }
  }

  ESKER_NOINLINE ESKER_HD static void do_duty(std::uint32_t salt, ActiveLanes active, std::uint32_t index) {
    const PeState& pe_state = pe_state_here();
    State& state = state_here();
    Block& block = state.blocks[index];
    const Position mine = active.position_among(true);
    const bool leads = mine.index + 1 == mine.total;
    active.sync();  // what the lane with the duty acquired, the crew may use
    const std::uint32_t command = block.command, width = block.width, columns = block.columns;
    const std::uint32_t bin = block.bin, first = block.first, strays = block.strays.load_relaxed();
    std::uint32_t count = columns - first;
    if (count == strays) return drop(active, leads, index);  // nothing to send
    if (leads && !state.in_progress_kernel) note_call(pe_state, command);
    const std::uint64_t* const words = words_of(state, index) + first;
    if (bin == pe_state.links) {
      PackageQueue queue = state.in_progress_kernel ? pe_state.progress_queue : pe_state.host_queue;
      std::uint64_t ticket = 0;
      bool has = false;
      if (leads && !state.in_progress_kernel) ticket = queue.reserve();
      for (std::uint32_t looks = 0;;) {
        if (leads)
          has = state.in_progress_kernel ? queue.try_reserve(ticket) : queue.was_empty(ticket);  // [reuse]
        if (active.any(has)) break;
        looks = wait_step(salt, active, looks);
        if (state.in_progress_kernel && looks >= ProgressPolicy::kPolls)
          return give_up(active, mine, index, words, count);
        if (active.any(state.abandoned.load_relaxed() != 0)) return drop(active, leads, index);
      }
      ticket = active.of_leader(ticket);
      active.sync();
      count =
          copy(active, mine, block, words, count, strays, queue.row(ticket, width, 0), queue.columns(width));
      if (leads) {
        give_back(state, index);
        queue.publish(ticket, command, width, count);
      }
    } else {
      const Mailbox& box = pe_state.to[bin];
      std::uint64_t turn = 0;
      bool claimed = false;
      std::uint32_t slot = 0;
      for (std::uint32_t looks = 0;;) {
        slot = ((salt + looks) * mine.total + mine.index) % Mailbox::kSlots;
        const bool empty = (!state.reserved || slot % 4 != 0) && box.looks_empty(slot);
        const Position rank = active.position_among(empty);
        claimed = empty && rank.index == salt % rank.total && box.try_claim(slot, turn);
        if (active.any(claimed)) break;
        looks = rank.total > 0 ? looks + 1 : wait_step(salt, active, looks);
        if (state.in_progress_kernel && looks >= ProgressPolicy::kPolls)
          return give_up(active, mine, index, words, count);
        if (active.any(state.abandoned.load_relaxed() != 0)) return drop(active, leads, index);
      }
      slot = active.of_first(claimed, slot);
      active.sync();
      count = copy(active, mine, block, words, count, strays, box.payload(slot), Mailbox::columns(width));
      if (claimed) {
        give_back(state, index);
        // Before the messages can be applied: a PE that counts them as applied would count them as sent.
        counter(pe_state.totals->sent).fetch_add_relaxed(count);
        if (bin == pe_state.self_link) {
          counter(pe_state.totals->local).fetch_add_relaxed(count);
        } else {
          counter(pe_state.totals->sent_to[bin]).fetch_add_relaxed(count);
          counter(pe_state.totals->bytes).fetch_add_relaxed(8 * count * width);
          counter(pe_state.totals->packages).fetch_add_relaxed(1);
        }
        const std::uint32_t kind = kind_of(Command::from_word(command));
        box.publish(slot, turn, kind == 0 || !state.in_progress_kernel ? kind : kind | kSentOn,
                    {command, width, count});
      }
    }
    active.sync();
    // Twice as much as was sent, if there is as much: where all PEs send, mailboxes stay nearly empty.
    (void)apply_near(salt, active, index, 2);
  }

  ESKER_HD static void drop(const ActiveLanes& active, bool leads, std::uint32_t index) {
    active.sync();
    if (leads) give_back(state_here(), index);
  }

  /// Of a progress kernel: what handlers have sent, and this block holds, goes back to their queue, to all
  /// shards in turn, since it may be as much as the group has been given; and the progress kernel sends no
  /// more.
  ESKER_NOINLINE ESKER_HD static void give_up(ActiveLanes active, Position mine, std::uint32_t index,
                                              const std::uint64_t* words, std::uint32_t count) {
    State& state = state_here();
    const Block& block = state.blocks[index];
    for (std::uint32_t c = mine.index, k = 0; c < count; c += mine.total, ++k) {
      if (words[c] != kStray)
        queue_message(pe_state_here(), block.command, block.width, words + c, block.columns, k);
    }
    active.sync();
    if (mine.index + 1 != mine.total) return;
    give_back(state, index);
    state.blocked.store_relaxed(1);
    pe_state_here().host->starving.store_relaxed(1);
  }

  /// Copies the block's messages; returns how many there are. Word r of message i goes to at[r * stride + i].
  ESKER_HD static std::uint32_t copy(const ActiveLanes& active, const Position& mine, const Block& block,
                                     const std::uint64_t* words, std::uint32_t count, std::uint32_t strays,
                                     std::uint64_t* at, std::uint32_t stride) {
    const std::uint32_t width = block.width, columns = block.columns;
    if (strays != 0) {
      std::uint32_t kept = 0;
      for (std::uint32_t from = 0; from < count; from += mine.total) {
        const std::uint32_t c = from + mine.index;
        const bool keeps = c < count && words[c] != kStray;
        const Position place = active.position_among(keeps);
        for (std::uint32_t r = 0; keeps && r < width; ++r)
          at[r * stride + kept + place.index] = words[r * columns + c];
        kept += place.total;
      }
      count = kept;
    } else {
      for (std::uint32_t r = 0; r < width; ++r) {
#pragma unroll 4
        for (std::uint32_t c = mine.index; c < count; c += mine.total)
          at[r * stride + c] = words[r * columns + c];
      }
    }
    active.sync();
    return count;
  }

  /// The lane sends no more.
  ESKER_NOINLINE ESKER_HD static void leave(std::uint32_t salt, std::uint32_t group_lanes) {
    State& state = state_here();
    const ActiveLanes active = GroupLane::coalesced();
    const Position mine = active.position_among(true);
    active.sync();
    bool last = false;
    if (mine.index + 1 == mine.total) {
      last = state.leavers.fetch_add_acq_rel(mine.total) + mine.total == group_lanes;  // [left]
    }
    if (!active.any(last)) return;
    active.sync();
    for (std::uint32_t bin = 0; bin < kMaxBins; ++bin) {
      std::uint32_t duty = kNone;
      const std::uint32_t seen = state.bins[bin].load_acquire();
      if (last && left_of(seen) > kFull) duty = close(bin, seen);
      do_duties(salt, active, duty);
    }
    const std::uint64_t applied = state.applied;
    const PeState& pe_state = pe_state_here();
    if (last && state.by_handlers > 0)
      counter(pe_state.totals->by_handlers).fetch_add_relaxed(state.by_handlers);
    if (last && applied > 0) {
      counter(pe_state.totals->sent).fetch_add_relaxed(applied);
      counter(pe_state.totals->local).fetch_add_relaxed(applied - state.direct);
      counter(pe_state.totals->direct).fetch_add_relaxed(state.direct);
      counter(pe_state.totals->applied).fetch_add_relaxed(applied);
    }
  }

  /// Applies up to `most` packages or chunks of frames that it finds at about as many places as the crew has
  /// lanes: slots of mailboxes and of frames in turn.
  ESKER_HD static std::uint32_t apply_near(std::uint32_t salt, const ActiveLanes& active, std::uint32_t looks,
                                           std::uint32_t most) {
    const PeState& pe_state = pe_state_here();
    const std::uint32_t slots = slot_places(pe_state), frames = places(pe_state) - slots;
    const std::uint32_t at_once = active.size() < 8 ? 8 : active.size();
    const bool among_frames = pe_state.has_network && frames > 0 && (looks % 2 == 0 || slots == 0);
    const std::uint32_t all = among_frames ? frames : slots;
    if (all == 0) return 0;
    return apply_some(pe_state, NoHandler{}, active, salt,
                      (among_frames ? slots : 0) + (salt + looks) * at_once % all,
                      all < at_once ? all : at_once, most)
        .messages;
  }

  /// One step of waiting for room, in a mailbox, the host's queue or the pool: applies what has arrived; when
  /// there is nothing, gives way. Takes and returns how often there was nothing.
  ESKER_NOINLINE ESKER_HD static std::uint32_t wait_step(std::uint32_t salt, ActiveLanes active,
                                                         std::uint32_t looks) {
    if (apply_near(salt, active, looks, 1) > 0) return looks;
    GroupLane::yield();
    if (++looks % kPollsUntilStarving == 0) {
      const PeState& pe_state = pe_state_here();
      pe_state.host->starving.store_relaxed(1);
      if (pe_state.words->abandoned.load_relaxed() != 0) state_here().abandoned.store_relaxed(1);
    }
    return looks;
  }

  std::uint32_t salt_;         // another one in each wave: waves look for slots in different places
  std::uint32_t applied_ = 0;  // messages that this lane has applied itself
};

/// A progress kernel's.
using ProgressOutbox = GroupOutbox<kLentPool>;

}  // namespace esker::gpu

#endif
