// A lane among its group, on a simulated GPU. Simulated pass only.
#pragma once

#include <bit>
#include <cstdint>
#include <esker/device/gpu/group.hpp>
#include <esker/device/simulated/lanes.hpp>

namespace esker {

namespace simulated {

/// Lanes are scheduled independently, as CUDA's are, so every call names its members.
struct Hardware {
  using Mask = std::uint32_t;
  static constexpr std::uint32_t kWaveLanes = simulated::kWaveLanes;
  static constexpr bool kLockStep = false;
  static constexpr Mask kAllLanes = 0xffffffffu;

  static std::uint32_t lane_in_wave() { return here.lane.x % kWaveLanes; }
  [[gnu::always_inline]] static Mask converged() { return simulated::converged(); }
  static Mask ballot(Mask members, bool flag) { return simulated::ballot(members, flag); }
  static std::uint64_t shuffle(Mask members, std::uint64_t word, std::uint32_t lane) {
    return simulated::shuffle(members, word, lane);
  }
  static std::uint32_t shuffle32(Mask members, std::uint32_t word, std::uint32_t lane) {
    return static_cast<std::uint32_t>(simulated::shuffle(members, word, lane));
  }
  static void sync(Mask members) { sync_wave(members); }
  template <class T>
  static T* in_global(T* at) {
    return at;
  }
  template <class T>
  static T* in_scratch(T* at) {
    return at;
  }
  static void prefetch(const void* at) { __builtin_prefetch(at); }
  static void group_sync() { sync_group(); }
  static std::uint64_t* lent_scratch() { return simulated::lent_scratch(); }
  static void scratch_fence() { simulated::scratch_fence(); }
  static std::uint32_t count(Mask mask) { return static_cast<std::uint32_t>(std::popcount(mask)); }
  static std::uint32_t lowest(Mask mask) { return static_cast<std::uint32_t>(std::countr_zero(mask)); }
  static std::uint32_t highest(Mask mask) { return static_cast<std::uint32_t>(std::bit_width(mask)) - 1; }
};

}  // namespace simulated

inline namespace simulated_pass {

class GroupLane : public BasicGroupLane<simulated::Hardware> {
 public:
  using BasicGroupLane::BasicGroupLane;
  [[gnu::always_inline]] static Coalesced coalesced() { return Coalesced(simulated::Hardware::converged()); }
};

}  // namespace simulated_pass

static_assert(LaneGroup<gpu::Wave<simulated::Hardware>> && LaneGroup<gpu::Group<simulated::Hardware>>);

}  // namespace esker
