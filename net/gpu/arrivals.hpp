// Places where messages arrive on a GPU: slots of mailboxes, and frames of the network.
#pragma once

#include <cstdint>
#include <esker/net/gpu/handler_calls.hpp>
#include <esker/net/gpu/handler_shards.hpp>
#include <esker/net/gpu/messages.hpp>
#include <esker/net/gpu/pe_state.hpp>
#include <esker/net/gpu/replies.hpp>
#include <type_traits>

#if defined(ESKER_ON_GPU)

namespace esker::gpu {

/// Places where messages arrive: the slots of each used link's mailbox, then those of frames.
ESKER_HD inline std::uint32_t slot_places(const PeState& pe_state) {
  return pe_state.used_links() * Mailbox::kSlots;
}
ESKER_HD inline std::uint32_t places(const PeState& pe_state) {
  return slot_places(pe_state) + (pe_state.frames == nullptr ? 0 : kFrames);
}

/// In a package's kind: handlers have sent what is in it, and a progress kernel has sent it on.
inline constexpr std::uint32_t kSentOn = 1u << 15;
static_assert(kRequests + 1 < kSentOn);

/// What a lane has taken from a place.
struct Taken {
  std::uint64_t turn;
  std::uint32_t space;  // of HandlerSpace, for so many calls
};

/// One place, as the active lanes that apply and the lane that takes from it see it.
class Place {
 public:
  ESKER_HD Place(const PeState& pe_state, std::uint32_t place)
      : link_{place / Mailbox::kSlots},
        slot_{place % Mailbox::kSlots},
        is_frame_{place >= slot_places(pe_state)} {}

  /// Whether it is worth taking from.
  ESKER_HD bool was_ready(const PeState& pe_state) const {
    if (!is_frame_) return pe_state.from[link_].was_full(slot_);
    const std::uint64_t seen = pe_state.frame_turns[slot_].cursor.load_relaxed();
    return FrameTurn::next(seen) < FrameTurn::chunks(seen);
  }
  /// The kind of what stands there: Mailbox::kNoKind if there is nothing. Others may take it meanwhile.
  ESKER_HD std::uint32_t kind_here(const PeState& pe_state) const {
    if (!is_frame_) {
      const std::uint32_t kind = pe_state.from[link_].kind_if_full(slot_);
      return kind == Mailbox::kNoKind ? kind : kind & ~kSentOn;
    }
    if (!was_ready(pe_state)) return Mailbox::kNoKind;
    const std::uint64_t seen = pe_state.frame_turns[slot_].cursor.load_acquire();  // [frame]
    if (FrameTurn::next(seen) >= FrameTurn::chunks(seen)) return Mailbox::kNoKind;
    return kind_of(Command::from_word(chunk(pe_state, seen).command));
  }
  /// A package, or a chunk of a frame, that `handlers` can apply.
  template <class Handlers>
  ESKER_HD bool try_take(const PeState& pe_state, const Handlers& handlers, Taken& taken) const {
    constexpr bool kCalls = !std::is_same_v<Handlers, NoHandler>;
    taken.space = 0;
    if (!is_frame_) {
      const Mailbox& box = pe_state.from[link_];
      // What a progress kernel has sent on is applied whatever waits here, or two PEs would wait for each
      // other.
      if (box.try_take(slot_, kCalls ? kind_of(handlers) | kSentOn : 0, taken.turn)) return true;
      if constexpr (!kCalls) return false;
      std::uint64_t seen = 0;
      if (!box.sees(slot_, kind_of(handlers), seen)) return false;
      // If another takes it meanwhile, it is some number, and what was seen is gone.
      const std::uint32_t count = box.header(slot_).count;
      return with_space(pe_state, count, taken, [&] { return box.try_take_seen(slot_, seen, taken.turn); });
    }
    FrameTurn& frame = pe_state.frame_turns[slot_];
    taken.turn = frame.cursor.load_acquire();  // [frame]
    if (FrameTurn::next(taken.turn) >= FrameTurn::chunks(taken.turn)) return false;
    const auto take = [&] { return frame.cursor.compare_exchange_acquire(taken.turn, taken.turn + 1); };
    const Chunk c = chunk(pe_state, taken.turn);
    const std::uint32_t kind = kind_of(Command::from_word(c.command));
    if constexpr (kAnswers<Handlers>) {
      if (kind != 0 && kind != kind_of(handlers)) return false;
      const std::uint64_t generation = FrameTurn::generation(taken.turn);
      while (!take()) {  // several waves want a frame's chunks: that one, or the next that is alike
        if (FrameTurn::generation(taken.turn) != generation ||
            FrameTurn::next(taken.turn) >= FrameTurn::chunks(taken.turn) ||
            kind_of(Command::from_word(chunk(pe_state, taken.turn).command)) != kind)
          return false;
      }
      return true;
    }
    // In the one-node projection a frame is this PE's own buffer, which sending on may need.
    const bool is_projected = c.source == pe_state.pe && pe_state.bin(pe_state.pe) == kNetwork;
    if (kind == 0 || (kind == kind_of(handlers) && is_projected)) return take();
    return kind == kind_of(handlers) && with_space(pe_state, c.count, taken, take);
  }
  ESKER_HD Messages messages(const PeState& pe_state, std::uint64_t turn) const {
    if (!is_frame_) {
      const Mailbox& box = pe_state.from[link_];
      const Mailbox::Header header = box.header(slot_);
      return {Command::from_word(header.command), header.words,       header.count,
              Mailbox::columns(header.words),     box.payload(slot_), pe_state.pe_of[link_]};
    }
    const Chunk c = chunk(pe_state, turn);
    const auto* const words = reinterpret_cast<const std::uint64_t*>(frame(pe_state) + c.at);
    return {Command::from_word(c.command), c.words, c.count, c.stride, words, c.source};
  }
  /// Where the replies to requests that stand here go, if that is a frame: the host sends them when the whole
  /// frame is applied. Else null.
  ESKER_HD ReplyRows reply_rows(const PeState& pe_state, std::uint64_t turn) const {
    if (!is_frame_) return {nullptr, 0};
    const Chunk c = chunk(pe_state, turn);
    return {c.replies, c.stride};
  }
  /// Of its messages, of this command, `count` are applied.
  ESKER_HD void give_back(const PeState& pe_state, const Taken& taken, Command command,
                          std::uint32_t count) const {
    const std::uint64_t turn = taken.turn;
    if (command.operation == Operation::kReply) counter(pe_state.totals->answered).fetch_add_relaxed(count);
    if (taken.space > 0) HandlerSpace(pe_state).give_back(taken.space);
    fence_system();  // quiet: the updates come before applied_from, or the frame's end, is seen
    counter(pe_state.totals->applied).fetch_add_relaxed(count);
    if (!is_frame_) {
      pe_state.from[link_].release(slot_, turn);
      counter(pe_state.totals->applied_from[link_]).fetch_add_relaxed(count);
      return;
    }
    FrameTurn& frame = pe_state.frame_turns[slot_];
    if (frame.finished.fetch_add_acq_rel(1) + 1 != FrameTurn::chunks(turn)) return;
    frame.finished.store_relaxed(0);
    pe_state.host->frame_done[slot_].store_release(FrameTurn::generation(turn));  // [frame]
  }

 private:
  /// Takes, if there is space for what `count` handlers send.
  template <class Take>
  ESKER_HD static bool with_space(const PeState& pe_state, std::uint32_t count, Taken& taken,
                                  const Take& take) {
    const HandlerSpace space(pe_state);
    if (!space.try_take(count)) return false;
    taken.space = count;
    if (take()) return true;
    space.give_back(count);
    return false;
  }
  ESKER_HD const std::byte* frame(const PeState& pe_state) const {
    return pe_state.frames + slot_ * pe_state.frame_bytes;
  }
  ESKER_HD Chunk chunk(const PeState& pe_state, std::uint64_t turn) const {
    const auto* const end = reinterpret_cast<const Chunk*>(frame(pe_state) + pe_state.frame_at);
    return end[-1 - static_cast<std::int64_t>(FrameTurn::next(turn))];
  }

  std::uint32_t link_;
  std::uint32_t slot_;  // of the mailbox, or of the frames
  bool is_frame_;
};

}  // namespace esker::gpu

#endif
