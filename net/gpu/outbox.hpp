// Stages 1 to 3 on the device: a group keeps an open package for each destination that it reaches directly,
// in scratchpad, and the lane that completes one flushes it into the peer's mailbox, or into the host's
// queue.
#pragma once

#include <cstdint>
#include <esker/device/group.hpp>
#include <esker/device/packing.hpp>
#include <esker/net/gpu/built_in.hpp>
#include <esker/net/gpu/flush.hpp>
#include <esker/net/gpu/outbox_state.hpp>
#include <esker/net/gpu/pe_state_copy.hpp>
#include <esker/net/gpu/requests.hpp>
#include <esker/net/gpu/waiting.hpp>
#include <type_traits>

#if defined(ESKER_ON_GPU)

namespace esker::gpu {

/// The packer of a group's lanes on a GPU, by destination: a bin for each link, and one for the host.
///
/// State. The group's OutboxState, and what a lane has applied itself.
///
/// Contract. begin() is collective over the group, before it diverges. Then any lane, in any branch, appends.
/// Each lane calls close() as the last thing it does; the last one to leave sends what is left. A command
/// determines how many words its messages have.
///
/// Handlers, which must not wait and may hold an ownership block, append by try_append(). What they complete
/// is pending; waves of the progress kernel flush it between packages.
///
/// Ordering. [left] everything that a lane has appended happens before the last lane's look at the open
/// blocks. The rest is GroupBlocks'.
///
/// Progress. No lane waits with a column that it has taken and not written: between the two it does nothing
/// that waits. For the waiting with a complete block see Flush.
template <std::uint32_t PoolWords, bool kInProgressKernel = false>
class GroupOutbox {
  using State = OutboxState<PoolWords>;
  using Blocks = typename State::Blocks;
  using Attempt = typename Blocks::Attempt;
  using Pool = typename State::Pool;
  using Flushing = Flush<PoolWords, kInProgressKernel>;
  using ActiveLanes = GroupLane::Coalesced;
  static constexpr std::uint32_t kNone = Blocks::kNone;

 public:
  using Package = typename Blocks::Block;

  /// `seed` is hash_seed_of() the lane.
  ESKER_HD explicit GroupOutbox(std::uint32_t seed) : seed_{seed} {}
  /// Once a group, collective, before any outbox of it sends. `pe_state` is the group's own copy.
  ESKER_HD static void begin(GroupLane& lane, const PeState& pe_state, std::uint32_t pool_words = PoolWords) {
    State& state = lane.scratch<State>();
    if (lane.lane() == 0) state.begin(pe_state, lane.group_lanes(), pool_words, kInProgressKernel);
    lane.group().sync();
  }

  /// Sends one message, or applies it at once: one for this PE, and for peers in reach requests and what is
  /// among the first that this lane applies itself (docs/design/messages-on-gpus.md). Returns whether the
  /// active lanes have sent a package: then they may send on what handlers have sent. `Width` is a constant
  /// where it is known.
  template <class Width>
  ESKER_HD bool append(Command command, Width width, const std::uint64_t* words) {
    const PeState& pe_state = pe_state_here();
    std::uint32_t bin = pe_state.bin(static_cast<std::uint32_t>(words[0] >> kOffsetBits));
    constexpr bool kKnowsWidth = requires { Width::value; };
    std::byte* heap = nullptr;
    if (bin == kSelf || applied_ < pe_state.most_direct || is_request(command.operation))
      heap = heap_in_reach(pe_state, bin, command);
    if (heap != nullptr) {
      if (is_request(command.operation)) {
        const Fetched fetched = fetch_own<kKnowsWidth>(heap, command, width, words);
        const ReplyMessage reply =
            reply_message(command, width, pe_state.pe, fetched, [=](std::uint32_t r) { return words[r]; });
        if (command.handler != 0) {  // a message of this lane's own to this PE
          const Command call{Operation::kActiveMessage, Operand::kNone, command.handler};
          return send(pe_state.self_link, call.word(), reply.width, reply.words);
        }
        apply_own<kKnowsWidth>(pe_state.heap.base, reply.command, reply.width, reply.words);
      } else {
        apply_own<kKnowsWidth>(heap, command, width, words);
      }
      ++applied_;
      if (bin != kSelf) count_direct();
      bin = kNoBin;
    } else {
      bin = package_for(pe_state, bin);
    }
    return send(bin, command.word(), width, words);
  }

  /// Of a handler, which must not wait: whether there was space for its message. A block that this completes
  /// is pending: flush_pending().
  ESKER_HD static bool try_append(std::uint32_t bin, Command command, std::uint32_t width,
                                  const std::uint64_t* words) {
    constexpr std::uint32_t kTries = 3;  // another command's block is closed, then one opened
    if (is_blocked()) return false;
    State& state = State::here();
    for (std::uint32_t tries = 0; tries < kTries; ++tries) {
      Attempt attempt = state.blocks.try_append(Pool{}, bin, command.word(), width, words);
      if (attempt.took != 0)
        attempt = state.blocks.write_there(Pool{}, bin, command.word(), width, words, attempt.took);
      if (attempt.left && attempt.complete == kNone)
        attempt = state.blocks.make_way(Pool{}, bin, command.word(), width, words, MostColumns{});
      if (attempt.complete != kNone) (void)state.pending.fetch_add_relaxed(1u << attempt.complete);
      if (!attempt.left) return true;
    }
    return false;
  }

  /// Sends what handlers have completed. Collective over active lanes of a progress kernel that are in no
  /// handler.
  ESKER_HD static void flush_pending(std::uint32_t seed, ActiveLanes active) {
    State& state = State::here();
    const bool speaks = active.is_speaker();
    while (active.any(speaks && state.pending.load_relaxed() != 0)) {
      std::uint32_t pending = state.pending.load_relaxed();
      const bool took =
          speaks && pending != 0 && state.pending.compare_exchange_relaxed(pending, pending & (pending - 1));
      if (!active.any(took)) continue;
      GroupLane::scratch_fence();  // [done]
      Flushing::one(seed, active, active.of_first(took, GroupLane::lowest_bit(pending)));
    }
  }

  /// One of those that a lane has applied itself, in a peer's heap.
  ESKER_HD static void count_direct() { (void)counter(State::here().direct).fetch_add_relaxed(1); }
  /// Of what handlers have sent, `applied` they have applied themselves.
  ESKER_HD static void count_of_handlers(std::uint32_t sent, std::uint32_t applied) {
    (void)counter(State::here().by_handlers).fetch_add_relaxed(sent);
    if (applied > 0) (void)counter(State::here().applied).fetch_add_relaxed(applied);
  }

  /// What this outbox has applied at once counts from now on.
  ESKER_HD void count_applied() {
    if (applied_ > 0) counter(State::here().applied).fetch_add_relaxed(applied_);
    applied_ = 0;
  }

  /// Of a progress kernel: its group need not take more of what handlers have sent.
  ESKER_HD static bool is_blocked() { return State::here().blocked.load_relaxed() != 0; }

  ESKER_HD void close() {
    count_applied();
    leave(seed_);
  }

 private:
  /// A package of the host's queue may hold fewer messages than a block.
  struct MostColumns {
    ESKER_HD std::uint32_t operator()(std::uint32_t bin, std::uint32_t width) const {
      const PeState& pe_state = pe_state_here();
      return bin == pe_state.links ? pe_state.host_queue.columns(width) : ~0u;
    }
  };

  template <class Width>
  ESKER_HD bool send(std::uint32_t bin, std::uint32_t command, Width width,
                     const std::uint64_t* words) const {
    const ActiveLanes active = GroupLane::coalesced();
    Attempt attempt{false, kNone, 0};
    if (bin != kNoBin) attempt = State::here().blocks.try_append(Pool{}, bin, command, width, words);
    if (!active.any(!attempt.is_over())) [[likely]]
      return false;
    if constexpr (requires { Width::value; }) {
      std::uint64_t copy[Width::value];  // where nobody asks for its address, a message stays in registers
      for (std::uint32_t r = 0; r < width; ++r) copy[r] = words[r];
      return send_slowly(seed_, active, bin, command, width, copy, attempt);
    } else {
      return send_slowly(seed_, active, bin, command, width, words, attempt);
    }
  }

  /// The rest of it, if an active lane has not got a column, or has completed a block.
  ESKER_NOINLINE ESKER_HD static bool send_slowly(std::uint32_t seed, ActiveLanes active, std::uint32_t bin,
                                                  std::uint32_t command, std::uint32_t width,
                                                  const std::uint64_t* words, Attempt attempt) {
    return State::here().blocks.append_slowly(
        Pool{}, active, bin, command, width, words, attempt, MostColumns{},
        [&](std::uint32_t complete) { Flushing::all(seed, active, complete); },
        [&](std::uint32_t polls) { return wait_step<State>(seed, active, polls); });
  }

  /// The lane sends no more.
  ESKER_NOINLINE ESKER_HD static void leave(std::uint32_t seed) {
    State& state = State::here();
    const ActiveLanes active = GroupLane::coalesced();
    const Position mine = active.position_among(true);
    active.sync();
    bool last = false;
    if (mine.index + 1 == mine.total)
      last = state.leavers.fetch_add_acq_rel(mine.total) + mine.total == state.group_lanes;  // [left]
    if (!active.any(last)) return;
    active.sync();
    for (std::uint32_t bin = 0; bin < kMaxBins; ++bin)
      Flushing::all(seed, active, last ? state.blocks.close(bin) : kNone);
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

  std::uint32_t seed_;         // another one in each wave: waves poll slots in different places
  std::uint32_t applied_ = 0;  // messages that this lane has applied itself
};

/// A progress kernel's.
using ProgressOutbox = GroupOutbox<kLentPool, true>;
static_assert(Packer<GroupOutbox<kLentPool>, Command, std::uint32_t, const std::uint64_t*> &&
              Packer<ProgressOutbox, Command, std::uint32_t, const std::uint64_t*>);

}  // namespace esker::gpu

#endif
