// A lane among its group, on HIP: the instructions. Device pass only.
#pragma once

#include <cstdint>
#include <esker/device/gpu/group.hpp>

namespace esker {

namespace hip_backend {

/// 64 lanes a wave (CDNA) or 32 (RDNA), known when the device pass runs. The execution mask says which
/// lanes take part, so `members` is only looked at by the caller.
struct Hardware {
  using Mask = std::uint64_t;
  static constexpr bool kLockStep = true;
  static constexpr std::uint32_t kWaveLanes = __AMDGCN_WAVEFRONT_SIZE;
  static constexpr Mask kAllLanes = kWaveLanes == 64 ? ~Mask{0} : Mask{0xffffffffu};

  __device__ static std::uint32_t lane_in_wave() { return __lane_id(); }
  __device__ static Mask converged() { return __ballot(1); }
  __device__ static Mask ballot(Mask, bool flag) { return __ballot(flag); }
  __device__ static std::uint64_t shuffle(Mask, std::uint64_t word, std::uint32_t lane) {
    return __shfl(static_cast<unsigned long long>(word), static_cast<int>(lane));
  }
  __device__ static std::uint32_t shuffle32(Mask, std::uint32_t word, std::uint32_t lane) {
    return __shfl(word, static_cast<int>(lane));
  }
  __device__ static void sync(Mask) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
  }
  template <class T>
  __device__ static T* in_global(T* at) {
    return at;
  }
  template <class T>
  __device__ static T* in_scratch(T* at) {
    return at;
  }
  __device__ static void prefetch(const void*) {}  // gfx90a and gfx1030 have none
  __device__ static void group_sync() { __syncthreads(); }
  __device__ static std::uint64_t* lent_scratch() {
    alignas(16) extern __shared__ std::uint64_t lent[];
    return lent;
  }
  __device__ static void scratch_fence() { __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "workgroup"); }
  __device__ static std::uint32_t count(Mask mask) { return static_cast<std::uint32_t>(__popcll(mask)); }
  __device__ static std::uint32_t lowest(Mask mask) {
    return static_cast<std::uint32_t>(__ffsll(static_cast<unsigned long long>(mask)) - 1);
  }
  __device__ static std::uint32_t highest(Mask mask) {
    return static_cast<std::uint32_t>(63 - __clzll(static_cast<long long>(mask)));
  }
};

}  // namespace hip_backend

/// A class of this name in each pass: the name of a kernel may contain it, and both passes must agree.
class GroupLane : public BasicGroupLane<hip_backend::Hardware> {
 public:
  using BasicGroupLane::BasicGroupLane;
};

static_assert(LaneGroup<gpu::Wave<hip_backend::Hardware>> && LaneGroup<gpu::Group<hip_backend::Hardware>>);

}  // namespace esker
