// Stage 4 on the device: packages of peers, frames of the network and messages to oneself become atomics and
// handler calls on the heap. Lanes that wait, or have just sent, apply some, and so do progress kernels.
#pragma once

#include <cstdint>
#include <esker/device/group.hpp>
#include <esker/device/lane_group.hpp>
#include <esker/net/gpu/arrivals.hpp>
#include <esker/net/gpu/built_in.hpp>
#include <esker/net/gpu/handler_calls.hpp>
#include <esker/net/gpu/pe_state.hpp>
#include <type_traits>

#if defined(ESKER_ON_GPU)

namespace esker::gpu {

/// What the active lanes have applied, and what this lane has seen.
struct Applied {
  std::uint32_t messages;
  std::uint64_t waiting;  // waiting_bit()s of what a progress kernel has found and left
};

/// Polls `polls` places, from `start` on, each lane one at a time, and applies what stands in up to `most` of
/// them; waves with another `seed` prefer others. Collective over the active lanes. Waits for nobody.
///
/// Not inlined, since a kernel waits in several places, and all by value: what has an address stands in
/// memory, and the cache in front of it is emptied by every acquire of the processor.
template <class Handlers, class ActiveLanes>
ESKER_NOINLINE ESKER_HD Applied apply_some(const PeState& pe_state, Handlers handlers, ActiveLanes active,
                                           std::uint32_t seed, std::uint32_t start, std::uint32_t polls,
                                           std::uint32_t most) {
  const Position mine = active.position_among(true);
  const std::uint32_t all = places(pe_state);
  constexpr bool kCalls = !std::is_same_v<Handlers, NoHandler>;
  Applied applied{};
  for (std::uint32_t polled = 0; polled < polls && most > 0; polled += mine.total) {
    const std::uint32_t at = (start + polled + mine.index) % all;
    const Place place(pe_state, at);
    bool ready = polled + mine.index < polls;
    [[maybe_unused]] std::uint32_t kind = Mailbox::kNoKind;
    if constexpr (kCalls) {
      if (ready) kind = place.kind_here(pe_state);
      ready = kind == 0 || kind == kind_of(handlers);
    } else {
      ready = ready && place.was_ready(pe_state);
    }
    const Position rank = active.position_among(ready);
    Taken taken{};
    bool took = ready && (rank.index + seed) % rank.total < most && place.try_take(pe_state, handlers, taken);
    if constexpr (kCalls) {
      if (!took && kind != 0 && kind != Mailbox::kNoKind) applied.waiting |= waiting_bit(kind);
    }
    if (rank.total == 0) continue;
    for (; active.any(took); --most) {
      const std::uint32_t next = active.of_first(took, at);
      active.sync();  // what the lane that took it acquired, the others may read
      const Messages messages = Place(pe_state, next).messages(pe_state, active.of_first(took, taken.turn));
      bool is_call = false;
      if constexpr (kCalls) {
        is_call = kind_of(messages.command) != 0;
        ReplyRows replies{};  // null: a handler is called, if need be to send each of them
        if constexpr (kAnswers<Handlers>)
          replies = Place(pe_state, next).reply_rows(pe_state, active.of_first(took, taken.turn));
        if (is_call && replies.words != nullptr) {
          answer(pe_state, messages, replies, mine);
        } else if (is_call) {
          call_handler(pe_state, handlers, messages, active, mine);
        }
      }
      if (!is_call) apply_built_in(pe_state, messages, mine);
      active.sync();
      applied.messages += messages.count;
      if (took && at == next) {
        place.give_back(pe_state, taken, messages.command, messages.count);
        took = false;
      }
    }
  }
  return applied;
}

}  // namespace esker::gpu

#endif
