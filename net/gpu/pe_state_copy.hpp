// A group's own copy of the PE's state, in scratchpad.
#pragma once

#include <cstdint>
#include <esker/device/group.hpp>
#include <esker/net/gpu/pe_state.hpp>

#if defined(ESKER_ON_GPU)

namespace esker::gpu {

struct PeStateCopy {
  std::uint64_t words[sizeof(PeState) / 8];
};
/// The group's copy of what lanes share: acquiring empties the cache that it would otherwise stay in.
ESKER_HD inline const PeState& pe_state_here() {
  return reinterpret_cast<const PeState&>(GroupLane::scratch_of<PeStateCopy>());
}
/// Makes that copy. Collective over the group, once.
ESKER_HD inline const PeState& copy_pe_state(GroupLane& lane, const PeState* pe_state) {
  const auto* const from = reinterpret_cast<const std::uint64_t*>(pe_state);
  PeStateCopy& copy = GroupLane::scratch_of<PeStateCopy>();
  for (std::uint32_t i = lane.lane(); i < sizeof(PeState) / 8; i += lane.group_lanes())
    copy.words[i] = from[i];
  lane.group().sync();
  return pe_state_here();
}

}  // namespace esker::gpu

#endif
