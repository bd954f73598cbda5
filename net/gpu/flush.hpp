// A group's complete packages leave a GPU: into the mailbox of a peer of the host, or into the host's queue.
#pragma once

#include <cstdint>
#include <esker/device/group.hpp>
#include <esker/net/gpu/handler_shards.hpp>
#include <esker/net/gpu/messages.hpp>
#include <esker/net/gpu/outbox_state.hpp>
#include <esker/net/gpu/waiting.hpp>

#if defined(ESKER_ON_GPU)

namespace esker::gpu {

/// Flushes complete blocks of a group's outbox.
///
/// Contract. Each call is collective over the active lanes of a wave, which hold no column of an open block.
/// Progress. The lanes wait for a slot alone, holding a block that nobody else waits for in turn, and apply
/// arrivals meanwhile: two GPUs full of lanes that wait for each other's mailboxes empty them. A progress
/// kernel gives up after a while, since its peers' progress kernels of this moment may call another handler:
/// what handlers have sent goes into their queue. A quarter of each mailbox is for progress kernels alone,
/// where there are handlers, so that lanes' messages do not keep handlers' from arriving.
template <std::uint32_t PoolWords, bool kInProgressKernel>
class Flush {
  using State = OutboxState<PoolWords>;
  using Blocks = typename State::Blocks;
  using Block = typename Blocks::Block;
  using Pool = typename State::Pool;
  using ActiveLanes = GroupLane::Coalesced;

 public:
  /// The blocks that the lanes have completed, one after the other; kNone: this lane has completed none.
  ESKER_NOINLINE ESKER_HD static void all(std::uint32_t seed, ActiveLanes active, std::uint32_t complete) {
    while (active.any(complete != Blocks::kNone)) {
      const std::uint32_t next = active.of_first(complete != Blocks::kNone, complete);
      one(seed, active, next);
      if (complete == next) complete = Blocks::kNone;
    }
  }

  /// One block, the same for all lanes.
  ESKER_NOINLINE ESKER_HD static void one(std::uint32_t seed, ActiveLanes active, std::uint32_t index) {
    const PeState& pe_state = pe_state_here();
    const Position mine = active.position_among(true);
    active.sync();  // what the lane that completed the block acquired, the others may use
    const Block& block = State::here().blocks.block(index);
    if (Blocks::is_empty(block)) return drop(active, mine, index);
    if (!kInProgressKernel && leads(mine)) note_call(pe_state, block.command);
    const bool sent = block.bin == pe_state.links ? to_host(seed, active, mine, index)
                                                  : to_mailbox(seed, active, mine, index);
    if (!sent) return;
    active.sync();
    // Twice as much as was sent, if there is as much: where all PEs send, mailboxes stay nearly empty.
    (void)apply_near(seed, active, index, 2);
  }

 private:
  ESKER_HD static bool leads(const Position& mine) { return mine.index + 1 == mine.total; }

  /// False: it has not been sent, and is no longer this wave's.
  ESKER_HD static bool to_host(std::uint32_t seed, const ActiveLanes& active, const Position& mine,
                               std::uint32_t index) {
    const PeState& pe_state = pe_state_here();
    Blocks& blocks = State::here().blocks;
    const std::uint32_t command = blocks.block(index).command, width = blocks.block(index).width;
    PackageQueue queue = kInProgressKernel ? pe_state.progress_queue : pe_state.host_queue;
    std::uint64_t ticket = 0;
    bool has = false;
    if (!kInProgressKernel && leads(mine)) ticket = queue.reserve();
    for (std::uint32_t polls = 0;;) {
      if (leads(mine))
        has = kInProgressKernel ? queue.try_reserve(ticket) : queue.was_empty(ticket);  // [reuse]
      if (active.any(has)) break;
      polls = wait_step<State>(seed, active, polls);
      if (!goes_on(active, mine, index, polls)) return false;
    }
    ticket = active.of_leader(ticket);
    active.sync();
    std::uint64_t* const rows = queue.row(ticket, width, 0);
    const std::uint32_t stride = queue.columns(width);
    const std::uint32_t count =
        blocks.copy(Pool{}, active, mine, index, [=](std::uint32_t r) { return rows + r * stride; });
    if (leads(mine)) {
      blocks.release(index);
      queue.publish(ticket, command, width, count);
    }
    return true;
  }

  ESKER_HD static bool to_mailbox(std::uint32_t seed, const ActiveLanes& active, const Position& mine,
                                  std::uint32_t index) {
    const PeState& pe_state = pe_state_here();
    State& state = State::here();
    const std::uint32_t command = state.blocks.block(index).command;
    const std::uint32_t width = state.blocks.block(index).width, bin = state.blocks.block(index).bin;
    const Mailbox& box = pe_state.to[bin];
    std::uint64_t turn = 0;
    bool claimed = false;
    std::uint32_t slot = 0;
    for (std::uint32_t polls = 0;;) {
      slot = ((seed + polls) * mine.total + mine.index) % Mailbox::kSlots;
      const bool empty = (!state.reserved || slot % 4 != 0) && box.was_empty(slot);
      const Position rank = active.position_among(empty);
      claimed = empty && rank.index == seed % rank.total && box.try_claim(slot, turn);
      if (active.any(claimed)) break;
      polls = rank.total > 0 ? polls + 1 : wait_step<State>(seed, active, polls);
      if (!goes_on(active, mine, index, polls)) return false;
    }
    slot = active.of_first(claimed, slot);
    active.sync();
    std::uint64_t* const rows = box.payload(slot);
    const std::uint32_t stride = Mailbox::columns(width);
    const std::uint32_t count =
        state.blocks.copy(Pool{}, active, mine, index, [=](std::uint32_t r) { return rows + r * stride; });
    if (claimed) {
      state.blocks.release(index);
      // Before the messages can be applied: a PE that counts them as applied would count them as sent.
      counter(pe_state.totals->sent).fetch_add_relaxed(count);
      if (bin == pe_state.self_link) {
        counter(pe_state.totals->local).fetch_add_relaxed(count);
      } else {
        counter(pe_state.totals->sent_to[bin]).fetch_add_relaxed(count);
        counter(pe_state.totals->bytes).fetch_add_relaxed(8 * count * width);
        counter(pe_state.totals->packages).fetch_add_relaxed(1);
      }
      if (is_request(Command::from_word(command).operation))
        counter(pe_state.totals->asked).fetch_add_relaxed(count);
      const std::uint32_t kind = kind_of(Command::from_word(command));
      box.publish(slot, turn, kind == 0 || !kInProgressKernel ? kind : kind | kSentOn,
                  {command, width, count});
    }
    return true;
  }

  /// After polls in vain: false, with the block put away, where it is time to give up.
  ESKER_HD static bool goes_on(const ActiveLanes& active, const Position& mine, std::uint32_t index,
                               std::uint32_t polls) {
    if (kInProgressKernel && polls >= ProgressPolicy::kPolls) {
      give_up(active, mine, index);
      return false;
    }
    if (active.any(State::here().abandoned.load_relaxed() != 0)) {
      drop(active, mine, index);
      return false;
    }
    return true;
  }

  ESKER_HD static void drop(const ActiveLanes& active, const Position& mine, std::uint32_t index) {
    active.sync();
    if (leads(mine)) State::here().blocks.release(index);
  }

  /// Of a progress kernel: what handlers have sent, and this block holds, goes back to their queue, to all
  /// shards in turn, since it may be as much as the group has been given; and the progress kernel sends no
  /// more.
  ESKER_NOINLINE ESKER_HD static void give_up(ActiveLanes active, Position mine, std::uint32_t index) {
    State& state = State::here();
    const Block& block = state.blocks.block(index);
    const std::uint64_t* const words = state.words(index) + block.first;
    const std::uint32_t count = Blocks::columns_of(block);
    for (std::uint32_t c = mine.index, k = 0; c < count; c += mine.total, ++k) {
      if (words[c] != kVoidColumn)
        queue_message(pe_state_here(), block.command, block.width, words + c, block.columns, k);
    }
    active.sync();
    if (!leads(mine)) return;
    state.blocks.release(index);
    state.blocked.store_relaxed(1);
    pe_state_here().host->starving.store_relaxed(1);
  }
};

}  // namespace esker::gpu

#endif
