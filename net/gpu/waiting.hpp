// How lanes on a GPU wait for space: they apply what has arrived meanwhile.
#pragma once

#include <cstdint>
#include <esker/device/group.hpp>
#include <esker/net/gpu/apply.hpp>
#include <esker/net/gpu/outbox_state.hpp>
#include <esker/net/gpu/pe_state_copy.hpp>

#if defined(ESKER_ON_GPU)

namespace esker::gpu {

/// After so many polls in vain waiting lanes wake the host, and see whether it has gone; those of a progress
/// kernel give up earlier (ProgressPolicy::kPolls).
inline constexpr std::uint32_t kPollsUntilStarving = 256;

/// Applies up to `most` packages or chunks of frames that it finds at about as many places as there are
/// active lanes: slots of mailboxes and of frames in turn.
ESKER_HD inline std::uint32_t apply_near(std::uint32_t seed, const GroupLane::Coalesced& active,
                                         std::uint32_t polls, std::uint32_t most) {
  const PeState& pe_state = pe_state_here();
  const std::uint32_t slots = slot_places(pe_state), frames = places(pe_state) - slots;
  const std::uint32_t at_once = active.size() < 8 ? 8 : active.size();
  const bool among_frames = pe_state.has_network && frames > 0 && (polls % 2 == 0 || slots == 0);
  const std::uint32_t all = among_frames ? frames : slots;
  if (all == 0) return 0;
  return apply_some(pe_state, NoHandler{}, active, seed,
                    (among_frames ? slots : 0) + (seed + polls) * at_once % all,
                    all < at_once ? all : at_once, most)
      .messages;
}

/// One step of waiting for space, in a mailbox, the host's queue or the pool: applies what has arrived; where
/// there is nothing, gives way. Takes and returns how often there was nothing.
template <class State>
ESKER_NOINLINE ESKER_HD std::uint32_t wait_step(std::uint32_t seed, GroupLane::Coalesced active,
                                                std::uint32_t polls) {
  if (apply_near(seed, active, polls, 1) > 0) return polls;
  GroupLane::yield();
  if (++polls % kPollsUntilStarving == 0) {
    const PeState& pe_state = pe_state_here();
    pe_state.host->starving.store_relaxed(1);
    if (pe_state.words->abandoned.load_relaxed() != 0) State::here().abandoned.store_relaxed(1);
  }
  return polls;
}

}  // namespace esker::gpu

#endif
