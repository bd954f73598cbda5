// A lane among its group, on CUDA: the instructions. Device pass only.
#pragma once

#include <cstdint>
#include <esker/device/cuda/scratchpad.hpp>
#include <esker/device/gpu/group.hpp>

namespace esker {

namespace cuda_backend {

/// sm_70 and later: lanes of a warp are scheduled independently, so every call names its members.
struct Hardware {
  using Mask = std::uint32_t;
  static constexpr std::uint32_t kWaveLanes = 32;
  static constexpr bool kLockStep = false;
  static constexpr Mask kAllLanes = 0xffffffffu;

  __device__ static std::uint32_t lane_in_wave() {
    std::uint32_t lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
  }
  __device__ static Mask converged() { return __activemask(); }
  __device__ static Mask ballot(Mask members, bool flag) { return __ballot_sync(members, flag); }
  __device__ static std::uint64_t shuffle(Mask members, std::uint64_t word, std::uint32_t lane) {
    return __shfl_sync(members, static_cast<unsigned long long>(word), static_cast<int>(lane));
  }
  __device__ static std::uint32_t shuffle32(Mask members, std::uint32_t word, std::uint32_t lane) {
    return __shfl_sync(members, word, static_cast<int>(lane));
  }
  __device__ static void sync(Mask members) { __syncwarp(members); }
  /// The same address, of which the compiler then knows that it is no scratchpad's.
  template <class T>
  __device__ static T* in_global(T* at) {
    __builtin_assume(__isGlobal(at));
    return at;
  }
  /// The same address, of which the compiler then knows that it is scratchpad's.
  template <class T>
  __device__ static T* in_scratch(T* at) {
    __builtin_assume(__isShared(at));
    return at;
  }
  __device__ static void prefetch(const void* at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); }
  __device__ static void group_sync() { __syncthreads(); }
  __device__ static std::uint64_t* lent_scratch() {
    alignas(16) extern __shared__ std::uint64_t lent[];
    return lent;
  }
#if defined(ESKER_ON_CUDA)
  static constexpr bool kScratchInOrder = __CUDA_ARCH__ == kOrderedScratchpad * 10;
#else
  static constexpr bool kScratchInOrder = false;  // the host pass calls nothing of this
#endif
  /// Where the processor keeps the order of accesses to scratchpad, it is the compiler alone that must be
  /// kept from changing it.
  __device__ static void scratch_fence() {
    if constexpr (kScratchInOrder) {
      asm volatile("" ::: "memory");
    } else {
      __threadfence_block();
    }
  }
  __device__ static std::uint32_t count(Mask mask) { return static_cast<std::uint32_t>(__popc(mask)); }
  __device__ static std::uint32_t lowest(Mask mask) { return static_cast<std::uint32_t>(__ffs(mask) - 1); }
  __device__ static std::uint32_t highest(Mask mask) { return static_cast<std::uint32_t>(31 - __clz(mask)); }
};

}  // namespace cuda_backend

/// A class of this name in each pass: the name of a kernel may contain it, and both passes must agree.
class GroupLane : public BasicGroupLane<cuda_backend::Hardware> {
 public:
  using BasicGroupLane::BasicGroupLane;
};

static_assert(LaneGroup<gpu::Wave<cuda_backend::Hardware>> && LaneGroup<gpu::Group<cuda_backend::Hardware>>);

}  // namespace esker
