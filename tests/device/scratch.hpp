// Lanes that hand over plain words in scratchpad.
#pragma once

#include <cstdint>

#include <esker/device/atomic.hpp>
#include <esker/device/group.hpp>
#include <esker/device/launch.hpp>

namespace esker::testing {

/// A group's lanes write a word each, and the last one to say so reads them all and lets the next round
/// begin: as lanes fill a package, and the one that completes it sends it and gives it back
/// (net/gpu/outbox.hpp). Between the two stand atomics that order nothing, and scratch_fence().
struct HandOver {
  static constexpr std::uint32_t kMostLanes = 256;
  struct Words {
    GroupAtomic<std::uint32_t> done;   // words written, in all rounds
    GroupAtomic<std::uint32_t> round;  // that lanes may write in
    std::uint32_t words[kMostLanes];
  };
  std::uint32_t rounds;
  DeviceAtomic<std::uint64_t>* wrong;  // a group's: words that were not the round's

  ESKER_HD static std::uint32_t word(std::uint32_t lane, std::uint32_t round) {
    return (lane * 0x9e3779b1u ^ round) * 0x85ebca6bu;
  }

  ESKER_HD void operator()([[maybe_unused]] GroupLane& lane) const {
#if defined(ESKER_ON_GPU)
    Words& shared = lane.scratch<Words>();
    const std::uint32_t lanes = lane.group_lanes();
    std::uint64_t seen_wrong = 0;
    bool has_written = false;
    // One step a turn: lanes of a wave that runs in lock step would wait for each other for ever.
    for (std::uint32_t round = 0; round < rounds;) {
      if (shared.round.load_relaxed() > round) {
        GroupLane::scratch_fence();
        ++round;
        has_written = false;
      } else if (has_written) {
        GroupLane::yield();
      } else {
        shared.words[lane.lane()] = word(lane.lane(), round);
        has_written = true;
        GroupLane::scratch_fence();
        if (shared.done.fetch_add_relaxed(1) + 1 != lanes * (round + 1)) continue;
        GroupLane::scratch_fence();
        for (std::uint32_t other = 0; other < lanes; ++other)
          seen_wrong += shared.words[other] != word(other, round) ? 1 : 0;
        GroupLane::scratch_fence();
        shared.round.store_relaxed(round + 1);
      }
    }
    if (seen_wrong > 0) (void)wrong[lane.group_id()].fetch_add_relaxed(seen_wrong);
#endif
  }
};

}  // namespace esker::testing
