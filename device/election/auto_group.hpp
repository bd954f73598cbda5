// Auto-grouping: a group's messages gather in scratchpad, and whoever completes a package sends it.
#pragma once

#include <cstdint>
#include <esker/device/atomic.hpp>
#include <esker/device/election/sink.hpp>
#include <esker/device/group.hpp>
#include <esker/device/lane_group.hpp>

namespace esker {

namespace detail {

/// State. Which generation of the package is open, for which command and width, how many columns are claimed,
/// and whether it is full. A claim is one compare-exchange of it.
struct PackageGate {
  static constexpr std::uint32_t kMaxWords = 63, kMaxColumns = 4095, kGenerations = 1u << 13;
  std::uint32_t command, words, claimed, full, generation;

  ESKER_HD static PackageGate unpack(std::uint64_t word) {
    const auto high = static_cast<std::uint32_t>(word >> 32);
    return {static_cast<std::uint32_t>(word), high & 63, high >> 6 & 4095, high >> 18 & 1, high >> 19};
  }
  ESKER_HD std::uint64_t pack() const {
    const std::uint32_t high = words | claimed << 6 | full << 18 | generation << 19;
    return std::uint64_t{high} << 32 | command;
  }
};

}  // namespace detail

/// Election per group without a group barrier: the default (the second layer of HiWayLib, section 3.4).
///
/// Contract. Construction is collective over the group, before it diverges. Then any lane, in any
/// branch, sends; lanes that are converged send as one crew and name the same command. Each lane calls
/// finish() as the last thing it does; the last one to leave sends what is left.
///
/// State. Two stages in scratchpad alternate: generation g of the group's package gathers in stage
/// g % 2. `gate` says, in one word, which generation is open, for which command and width, and how many
/// columns are claimed. A generation closes when it is full, or when a message of another command or
/// width, or one for which no column is left, opens the next.
///
/// Protocol. A crew's leader
///   1. claims columns with one compare-exchange on `gate`; if that closes the generation before, it
///      notes there what the package holds and adds kClosed - columns to its `balance`;
///   2. after the crew has written its columns, adds their number to the stage's `balance`, and also
///      kClosed - columns if its claim filled the generation.
/// `balance` passes kClosed exactly once, in the add that finds the generation closed and every column
/// written. That crew has the duty: it reserves a ticket, waits for the slot, copies, publishes, and
/// hands the stage back by counting `drains` up. Generation g may open when its stage has been drained
/// g / 2 times.
///
/// Ordering.
///   [written] columns written by a crew, and the note  happen before  the duty's copy
///             (acq_rel add to balance; later adds continue the release sequence)
///   [drained] the duty's reads of the stage            happen before  the next opener's claim
///             (release store, acquire load of drains)
///   [open]    the opener's acquire of [drained]        happens before  every later crew's writes
///             (acq_rel compare-exchange of gate)
///   [left]    everything a lane sent                   happens before  the last leaver's look
///             (acq_rel add to leavers)
///
/// Progress. A crew waits in two places, and in neither does anybody need anything from it:
///   - for a stage to be drained: it has claimed nothing that it has not written;
///   - in its duty, for a queue slot: it waits for the outside, holds one ticket, and gathers no more.
///     (It may owe the next generation's duty too, which waits for this one and nothing else.)
/// Between a claim and its add to `balance` there is no wait. So tickets are never held while messages
/// gather, and the stage that a crew waits for is being copied by a crew that waits for the outside at
/// most. On hardware whose waves run in lock step, a diverged part of a wave runs send() from beginning
/// to end before another part runs, because send() diverges only where the leader acts for its crew: the
/// crew that has the duty is then always another wave, which the hardware runs on.
template <std::uint32_t StageWords = 512>
class BasicAutoGroup {
 public:
  ESKER_HD explicit BasicAutoGroup(GroupLane& lane) : shared_{lane.scratch<Shared>()} {}

  template <std::uint32_t Words, class S>
  ESKER_HD void send(GroupLane& lane, S& sink, std::uint32_t command, const std::uint64_t (&words)[Words]) {
    static_assert(Sink<S>);
    static_assert(Words <= Gate::kMaxWords && Words <= StageWords);
    auto active = lane.coalesced();
    const Position mine = active.position_among(true);
    const bool leads = mine.index + 1 == mine.total;
    for (std::uint32_t sent = 0; sent < mine.total;) {
      Claim claim{};
      bool completed_other = false;  // this claim closed the generation before, which was written
      if (leads) claim = take(lane, sink, command, Words, mine.total - sent, completed_other);
      claim = Claim::unpack(active.broadcast(claim.pack(), mine.last));
      Stage& stage = shared_.stages[claim.stage];
      if (mine.index >= sent && mine.index - sent < claim.columns) {
        const std::uint32_t column = claim.first + mine.index - sent;
        for (std::uint32_t r = 0; r < Words; ++r) stage.words[r * (StageWords / Words) + column] = words[r];
      }
      active.sync();
      std::uint32_t duties = 0;  // a bit a stage
      if (leads) {
        const std::uint32_t filled = claim.first + claim.columns;
        if (claim.fills) note(stage, command, Words, filled);
        const bool completed = settle(stage, claim.columns + (claim.fills ? kClosed - filled : 0));
        duties = (completed_other ? 1u << (1 - claim.stage) : 0u) | (completed ? 1u << claim.stage : 0u);
      }
      duties = active.broadcast(duties, mine.last);
      // Both if others filled the generation that this crew opened before it had written its columns.
      if ((duties >> (1 - claim.stage) & 1) != 0) do_duty(lane, active, mine, sink, 1 - claim.stage);
      if ((duties >> claim.stage & 1) != 0) do_duty(lane, active, mine, sink, claim.stage);
      sent += claim.columns;
    }
  }

  /// The lane sends no more. The last lane of the group to say so sends what is left.
  template <class S>
  ESKER_HD void finish(GroupLane& lane, S& sink) {
    auto active = lane.coalesced();
    const Position mine = active.position_among(true);
    std::uint32_t duty = kNone;
    if (mine.index + 1 == mine.total) {
      const std::uint32_t left = shared_.leavers.fetch_add_acq_rel(mine.total) + mine.total;  // [left]
      const Gate last = Gate::unpack(shared_.gate.load_relaxed());
      if (left == lane.group_lanes() && last.claimed > 0 && !last.full) {
        Stage& stage = shared_.stages[last.generation % 2];
        note(stage, last.command, last.words, last.claimed);
        if (settle(stage, kClosed - last.claimed)) duty = last.generation % 2;
      }
    }
    duty = active.broadcast(duty, mine.last);
    if (duty != kNone) do_duty(lane, active, mine, sink, duty);
  }

 private:
  static constexpr std::uint32_t kNone = 2;
  static constexpr std::uint32_t kClosed = 1u << 31;

  struct Stage {
    GroupAtomic<std::uint32_t> balance;           // columns written, + kClosed - columns once closed
    GroupAtomic<std::uint32_t> drains;            // generations copied out; written by whoever has the duty
    std::uint32_t command, width, count, unused;  // the note: written by whoever closes
    std::uint64_t words[StageWords];              // row r at r * (StageWords / width)
  };
  struct Shared {
    GroupAtomic<std::uint64_t> gate;
    GroupAtomic<std::uint32_t> leavers;
    std::uint32_t unused;
    Stage stages[2];
  };

  using Gate = detail::PackageGate;
  static_assert(StageWords <= Gate::kMaxColumns);

  /// What a leader got; it tells its crew in one word.
  struct Claim {
    std::uint32_t stage, first, columns;
    bool fills;  // took the last free columns of its generation

    ESKER_HD std::uint64_t pack() const {
      return std::uint64_t{first} << 32 | columns << 2 | stage << 1 | (fills ? 1u : 0u);
    }
    ESKER_HD static Claim unpack(std::uint64_t word) {
      const auto low = static_cast<std::uint32_t>(word);
      return {low >> 1 & 1, static_cast<std::uint32_t>(word >> 32), low >> 2, (low & 1) != 0};
    }
  };

  /// Leader: claims up to `count` columns, waiting for a stage if need be.
  template <class S>
  ESKER_HD Claim take(GroupLane& lane, S& sink, std::uint32_t command, std::uint32_t words,
                      std::uint32_t count, bool& completed_other) {
    const std::uint32_t stage_columns = StageWords / words, slot_columns = sink.columns(words);
    const std::uint32_t capacity = stage_columns < slot_columns ? stage_columns : slot_columns;
    for (;;) {
      std::uint64_t seen = shared_.gate.load_relaxed();
      const Gate old = Gate::unpack(seen);
      const bool joins = old.claimed == 0 || (old.full == 0 && old.command == command && old.words == words);
      Gate next{command, words, joins ? old.claimed : 0, 0,
                joins ? old.generation : (old.generation + 1) % Gate::kGenerations};
      Stage& stage = shared_.stages[next.generation % 2];
      // A stage counts its drains and the gate its generations, each modulo its width.
      const std::uint32_t due = next.generation / 2, mask = Gate::kGenerations / 2 - 1;
      if (!joins && (stage.drains.load_acquire() & mask) != due) {  // [drained]
        lane.await("auto-group stage", [&] {
          return (stage.drains.load_relaxed() & mask) == due || shared_.gate.load_relaxed() != seen;
        });
        continue;
      }
      const std::uint32_t first = next.claimed;
      const std::uint32_t columns = count < capacity - first ? count : capacity - first;
      next.claimed = first + columns;
      next.full = next.claimed == capacity ? 1 : 0;
      if (!shared_.gate.compare_exchange_acq_rel(seen, next.pack())) continue;  // [open]

      if (!joins && old.full == 0) {
        Stage& before = shared_.stages[old.generation % 2];
        note(before, old.command, old.words, old.claimed);
        completed_other = settle(before, kClosed - old.claimed);
      }
      return {next.generation % 2, first, columns, next.full != 0};
    }
  }

  ESKER_HD static void note(Stage& stage, std::uint32_t command, std::uint32_t words, std::uint32_t count) {
    stage.command = command;
    stage.width = words;
    stage.count = count;
  }
  /// True for the one add that completes the generation.
  ESKER_HD static bool settle(Stage& stage, std::uint32_t amount) {
    return stage.balance.fetch_add_acq_rel(amount) + amount == kClosed;  // [written]
  }

  template <class ActiveLanes, class S>
  ESKER_HD void do_duty(GroupLane& lane, ActiveLanes& active, const Position& mine, S& sink,
                        std::uint32_t duty) {
    const bool leads = mine.index + 1 == mine.total;
    Stage& stage = shared_.stages[duty];
    std::uint64_t ticket = 0;
    if (leads) {
      ticket = sink.reserve(1);
      while (!sink.was_empty(ticket)) sink.pause(lane);
    }
    ticket = active.broadcast(ticket, mine.last);
    active.sync();  // what the leader acquired, the crew may use
    const std::uint32_t width = stage.width, count = stage.count, stride = StageWords / width;
    for (std::uint32_t r = 0; r < width; ++r) {
      std::uint64_t* row = sink.row(ticket, width, r);
      for (std::uint32_t c = mine.index; c < count; c += mine.total) row[c] = stage.words[r * stride + c];
    }
    const std::uint32_t command = stage.command;
    active.sync();
    if (leads) {
      sink.publish(ticket, command, width, count);
      stage.balance.store_relaxed(0);
      stage.drains.store_release(stage.drains.load_relaxed() + 1);  // [drained]
    }
  }

  Shared& shared_;
};

using AutoGroup = BasicAutoGroup<>;

}  // namespace esker
