// Stages 1 to 3 on the device: a group keeps an open package for each destination that it reaches directly,
// in scratchpad, and whoever completes one writes it into the peer's ring, or into the host's queue.
#pragma once

#include <cstdint>
#include <esker/device/election/package_gate.hpp>
#include <esker/device/group.hpp>
#include <esker/net/gpu/apply.hpp>
#include <esker/net/gpu/share.hpp>

#if defined(ESKER_ON_GPU)

namespace esker::gpu {

inline constexpr std::uint32_t kMaxBins = kMaxLinks + 1;  // the links, and the host
inline constexpr std::uint32_t kNoBin = kMaxBins;         // of a lane that has nothing to send
inline constexpr std::uint32_t kPoolWords = 1024;         // of all open packages of a group

/// After so many looks in vain a crew wakes the host.
inline constexpr std::uint32_t kLooksUntilStarving = 256;

/// Scratchpad of an outbox, zeroed.
struct OutboxState {
  struct Stage {
    GroupAtomic<std::uint32_t> balance;  // columns written, + kClosed - columns once closed
    GroupAtomic<std::uint32_t> drains;   // generations sent; written by whoever has the duty
    std::uint32_t command, width, count, unused;
  };
  GroupAtomic<std::uint64_t> gates[kMaxBins];
  GroupAtomic<std::uint32_t> leavers;
  std::uint32_t bins;         // in use: links, and the host if it leads anywhere
  std::uint32_t stage_words;  // each bin has two stages of the pool
  std::uint32_t unused;
  Stage stages[kMaxBins][2];
  std::uint64_t local;  // messages that lanes have applied here themselves
  std::uint64_t pool[kPoolWords];
};

/// What a group's lanes send, by destination.
///
/// Contract. Construction is collective over the group, before it diverges. Then any lane, in any branch,
/// sends; lanes that are converged send as one crew and name the same command. Each lane calls finish() as
/// the last thing it does; the last one to leave sends what is left.
///
/// State. Per bin what BasicAutoGroup has for all messages of a group: two stages that alternate, a gate that
/// says which generation is open, for which command, and how many columns are claimed, and a balance that
/// passes kClosed in the add that finds the generation closed and every column written. That crew has the
/// duty of sending it. The labels [written], [drained], [open] and [left] are BasicAutoGroup's.
///
/// Protocol. Lanes of a crew with the same bin share one claim; their leaders claim side by side. Binning so
/// early, in every wave at once, leaves the duty a copy of adjacent words.
///
/// Progress. A leader that finds no stage claims nothing and tries again after the crew has written what its
/// other leaders have claimed, so no crew waits with columns that it has claimed and not written. In its duty
/// a crew waits for a slot alone, holding one ticket that nobody else waits for in turn, and applies arrivals
/// meanwhile: two GPUs full of lanes that wait for each other's rings empty them.
class GroupOutbox {
 public:
  ESKER_HD GroupOutbox(GroupLane& lane, const DeviceShare& share)
      : share_{&share}, state_{&lane.scratch<OutboxState>()} {
    if (lane.lane() == 0) {
      state_->bins = share.links + (share.has_network ? 1 : 0);
      const std::uint32_t words = kPoolWords / (2 * state_->bins) / 16 * 16;
      state_->stage_words = words < kStageWords ? words : kStageWords;
    }
    lane.group().sync();
  }

  /// Sends one message a lane, or applies it at once if it is for this PE. Lanes that apply stay with their
  /// crew, so that it is whole again for the next call.
  ESKER_HD void post(GroupLane& lane, Command command, std::uint32_t width, const std::uint64_t* words) {
    const bool has_handler = command.operation == Operation::kActiveMessage;  // handlers run in passes alone
    std::uint32_t bin = share_->bin(words[0] >> kOffsetBits);
    if (bin == kSelf && !has_handler) {
      const Messages own{command, width, 1, 1, words, share_->pe};
      apply_built_in(*share_, own, Position{0, 1, 0});
      ++local_;
      bin = kNoBin;
    } else {
      bin = bin == kSelf ? share_->self_link : bin == kNetwork ? share_->links : bin;
    }
    send(lane, bin, command.word(), width, words);
  }
  /// Whether this lane has sent a package since the last call: then it may send on what handlers have sent.
  ESKER_HD bool take_delivered() {
    const bool delivered = has_delivered_;
    has_delivered_ = false;
    return delivered;
  }

  ESKER_NOINLINE ESKER_HD void finish(GroupLane& lane) {
    auto crew = lane.coalesced();
    const Position mine = crew.position_among(true);
    if (local_ > 0) counter(state_->local).fetch_add_relaxed(local_);
    crew.sync();
    bool last = false;
    if (mine.index + 1 == mine.total) {
      last = state_->leavers.fetch_add_acq_rel(mine.total) + mine.total == lane.group_lanes();  // [left]
    }
    if (crew.position_among(last).total == 0) return;
    for (std::uint32_t bin = 0; bin < state_->bins; ++bin) {
      const Gate gate = Gate::unpack(state_->gates[bin].load_relaxed());
      if (gate.claimed == 0 || gate.full != 0) continue;
      OutboxState::Stage& stage = state_->stages[bin][gate.generation % 2];
      bool duty = false;
      if (mine.index == 0) {
        note(stage, gate.command, gate.words, gate.claimed);
        duty = settle(stage, kClosed - gate.claimed);
      }
      if (crew.position_among(duty).total != 0) do_duty(lane, crew, mine, bin, gate.generation % 2);
    }
    const std::uint64_t local = state_->local;
    if (mine.index == 0 && local > 0) {
      counter(share_->totals->sent).fetch_add_relaxed(local);
      counter(share_->totals->local).fetch_add_relaxed(local);
      counter(share_->totals->applied).fetch_add_relaxed(local);
    }
  }

 private:
  static constexpr std::uint32_t kClosed = 1u << 31;

  using Gate = detail::PackageGate;
  /// What a leader got, in a word; one that found no stage has no columns.
  struct Claim {
    std::uint32_t stage, first, columns;
    bool fills;

    ESKER_HD std::uint32_t pack() const {
      return first << 14 | columns << 2 | stage << 1 | (fills ? 1u : 0u);
    }
    ESKER_HD static Claim unpack(std::uint32_t word) {
      return {word >> 1 & 1, word >> 14, word >> 2 & 4095, (word & 1) != 0};
    }
  };

  ESKER_HD static void note(OutboxState::Stage& stage, std::uint32_t command, std::uint32_t words,
                            std::uint32_t count) {
    stage.command = command;
    stage.width = words;
    stage.count = count;
  }
  ESKER_HD static bool settle(OutboxState::Stage& stage, std::uint32_t amount) {
    return stage.balance.fetch_add_acq_rel(amount) + amount == kClosed;  // [written]
  }
  ESKER_HD std::uint64_t* words_of(std::uint32_t bin, std::uint32_t stage) const {
    return state_->pool + (2 * bin + stage) * state_->stage_words;
  }

  /// Leader: claims up to `count` columns of its bin; none if the stage that is due is still being sent.
  ESKER_HD Claim try_take(std::uint32_t bin, std::uint32_t command, std::uint32_t width, std::uint32_t count,
                          bool& completed_other) {
    std::uint32_t capacity = state_->stage_words / width;
    if (bin == share_->links) {
      const std::uint32_t columns = share_->host_queue.columns(width);
      capacity = columns < capacity ? columns : capacity;
    }
    std::uint64_t seen = state_->gates[bin].load_relaxed();
    for (;;) {
      const Gate old = Gate::unpack(seen);
      const bool joins = old.claimed == 0 || (old.full == 0 && old.command == command && old.words == width);
      Gate next{command, width, joins ? old.claimed : 0, 0,
                joins ? old.generation : (old.generation + 1) % Gate::kGenerations};
      OutboxState::Stage& stage = state_->stages[bin][next.generation % 2];
      const std::uint32_t due = next.generation / 2, mask = Gate::kGenerations / 2 - 1;
      if (!joins && (stage.drains.load_acquire() & mask) != due) return {0, 0, 0, false};  // [drained]
      const std::uint32_t first = next.claimed;
      const std::uint32_t columns = count < capacity - first ? count : capacity - first;
      next.claimed = first + columns;
      next.full = next.claimed == capacity ? 1 : 0;
      if (!state_->gates[bin].compare_exchange_acq_rel(seen, next.pack())) continue;  // [open]
      if (!joins && old.full == 0) {
        OutboxState::Stage& before = state_->stages[bin][old.generation % 2];
        note(before, old.command, old.words, old.claimed);
        completed_other = settle(before, kClosed - old.claimed);
      }
      return {next.generation % 2, first, columns, next.full != 0};
    }
  }

  ESKER_HD void send(GroupLane& lane, std::uint32_t bin, std::uint32_t command, std::uint32_t width,
                     const std::uint64_t* words) {
    auto crew = lane.coalesced();
    if (!crew.any(bin != kNoBin)) return;
    const auto equal = crew.equals(bin);
    const bool leads = equal.rank == 0 && bin != kNoBin;
    std::uint32_t taken = bin == kNoBin ? equal.total : 0;  // messages of this bin that have got columns
    std::uint32_t looks = 0;
    for (;;) {
      Claim claim{0, 0, 0, false};
      bool completed_other = false;
      if (leads && taken < equal.total) {
        claim = try_take(bin, command, width, equal.total - taken, completed_other);
      }
      claim = Claim::unpack(crew.word_of(equal.first, claim.pack()));
      if (equal.rank >= taken && equal.rank - taken < claim.columns) {
        std::uint64_t* const at = words_of(bin, claim.stage) + claim.first + (equal.rank - taken);
        const std::uint32_t stride = state_->stage_words / width;
        const std::uint64_t keep = bin == share_->links ? ~std::uint64_t{0} : kOffsetMask;
        at[0] = words[0] & keep;
        for (std::uint32_t r = 1; r < width; ++r) at[r * stride] = words[r];
      }
      crew.sync();
      std::uint32_t duties = 0;  // a bit a stage of the bin
      if (leads && claim.columns > 0) {
        OutboxState::Stage& stage = state_->stages[bin][claim.stage];
        const std::uint32_t filled = claim.first + claim.columns;
        if (claim.fills) note(stage, command, width, filled);
        const bool completed = settle(stage, claim.columns + (claim.fills ? kClosed - filled : 0));
        duties = (completed_other ? 1u << (1 - claim.stage) : 0u) | (completed ? 1u << claim.stage : 0u);
      }
      taken += claim.columns;
      if (crew.any(duties != 0)) {
        // The generation before first: the next one of its bin waits for it.
        for (std::uint32_t other = 2; other-- > 0;) {
          const std::uint32_t bit = 1u << (other == 1 ? 1 - claim.stage : claim.stage);
          do_duties(lane, crew, bin, claim.stage ^ other, (duties & bit) != 0);
        }
      } else if (crew.any(leads && taken < equal.total && claim.columns == 0)) {
        if (++looks > 2) lane.yield();
      }
      if (!crew.any(taken < equal.total)) return;
    }
  }

  /// The duties of those leaders of the crew that have one, one after the other.
  template <class Crew>
  ESKER_HD void do_duties(GroupLane& lane, Crew& crew, std::uint32_t bin, std::uint32_t stage,
                          bool has_duty) {
    const Position mine = crew.position_among(true);
    for (bool has = has_duty;;) {
      const Position left = crew.position_among(has);
      if (left.total == 0) return;
      const std::uint32_t whose_bin = crew.broadcast(bin, left.last);
      const std::uint32_t whose_stage = crew.broadcast(stage, left.last);
      do_duty(lane, crew, mine, whose_bin, whose_stage);
      if (mine.index == left.last) has = false;
    }
  }

  template <class Crew>
  ESKER_NOINLINE ESKER_HD void do_duty(GroupLane& lane, Crew& crew, const Position& mine, std::uint32_t bin,
                                       std::uint32_t s) {
    const DeviceShare& share = *share_;
    OutboxState::Stage& stage = state_->stages[bin][s];
    crew.sync();  // what the leader acquired, the crew may use
    const std::uint32_t width = stage.width, count = stage.count, stride = state_->stage_words / width;
    const bool to_host = bin == share.links;
    const auto channel = static_cast<std::uint32_t>(lane.group_id() % kChannels);
    PackageQueue queue = to_host ? share.host_queue : share.to[bin].channel(channel);
    const bool leads = mine.index + 1 == mine.total;
    const std::uint64_t ticket = crew.broadcast(leads ? queue.reserve() : std::uint64_t{0}, mine.last);
    for (std::uint32_t looks = 0;;) {
      const bool empty = leads && queue.was_empty(ticket);  // [reuse]
      if (crew.any(empty)) break;
      wait_step(lane, crew, mine, looks);
    }
    crew.sync();
    const std::uint64_t* const words = words_of(bin, s);
    for (std::uint32_t r = 0; r < width; ++r) {
      std::uint64_t* const row = queue.row(ticket, width, r);
#pragma unroll 4
      for (std::uint32_t c = mine.index; c < count; c += mine.total) row[c] = words[r * stride + c];
    }
    const std::uint32_t command = stage.command;
    crew.sync();
    if (leads) {
      // The stage is free for the next generation before this one has crossed the link.
      stage.balance.store_relaxed(0);
      stage.drains.store_release(stage.drains.load_relaxed() + 1);  // [drained]
      if (!to_host) {
        // Before the messages can be applied: a PE that counts them as applied would count them as sent.
        counter(share.totals->sent).fetch_add_relaxed(count);
        if (bin == share.self_link) {
          counter(share.totals->local).fetch_add_relaxed(count);
        } else {
          counter(share.totals->sent_to[bin]).fetch_add_relaxed(count);
          counter(share.totals->bytes).fetch_add_relaxed(8 * count * width);
          counter(share.totals->packages).fetch_add_relaxed(1);
        }
      }
      queue.publish(ticket, command, width, count);
    }
    crew.sync();
    has_delivered_ = true;
    // About as much again as was sent, so arrivals keep pace with departures wherever all PEs send.
    if (to_host) {
      const std::uint32_t f =
          channel + kChannels * static_cast<std::uint32_t>(ticket % (kFrames / kChannels));
      apply_some(share, NoHandler{}, crew, mine, share.links * kChannels + f,
                 share.frames == nullptr ? 0 : 1);
    } else if (bin != share.self_link) {
      apply_some(share, NoHandler{}, crew, mine, channel * share.links + bin, 1);
    }
  }

  /// One step of waiting for room: applies what has arrived; when there is nothing, gives way.
  template <class Crew>
  ESKER_HD void wait_step(GroupLane& lane, Crew& crew, const Position& mine, std::uint32_t& looks) {
    const std::uint32_t all = share_->has_network ? places(*share_) : share_->links * kChannels;
    const auto start = static_cast<std::uint32_t>(lane.group_id() + 7 * looks) % (all == 0 ? 1 : all);
    const std::uint32_t left = all - start;
    if (apply_some(*share_, NoHandler{}, crew, mine, start, left < 4 ? left : 4) == 0) {
      lane.yield();
      if (++looks % kLooksUntilStarving == 0 && mine.index == 0) share_->host->starving.store_relaxed(1);
    }
  }

  const DeviceShare* share_;
  OutboxState* state_;
  std::uint32_t local_ = 0;
  bool has_delivered_ = false;
};

}  // namespace esker::gpu

#endif
