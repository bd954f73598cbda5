// Atomics on CUDA: cuda::atomic_ref, and scratchpad's own instructions. Device pass only; the names that
// device/atomic.hpp asks for.
#pragma once

#include <esker/device/platform.hpp>
#include <esker/device/scope.hpp>

#if defined(ESKER_ON_CUDA)
#include <cuda/atomic>
#include <type_traits>

namespace esker::detail {

inline constexpr auto kRelaxed = cuda::memory_order_relaxed;
inline constexpr auto kAcquire = cuda::memory_order_acquire;
inline constexpr auto kRelease = cuda::memory_order_release;
inline constexpr auto kAcqRel = cuda::memory_order_acq_rel;
inline constexpr auto kReleaseAfterFence = kRelaxed;

/// A word in scratchpad, by the instructions for scratchpad. cuda::atomic_ref has instructions for any
/// address, which take longer, and nothing says that these keep their order among scratchpad's own
/// (GroupLane::scratch_fence()).
template <class T>
class ScratchRef {
  static constexpr bool kWide = sizeof(T) == 8;

// One instruction, relaxed or in the order that the operation has else. Operands are asm's, from the outputs
// on.
#define ESKER_IN_ORDER(instruction, ordered, rest, ...)       \
  if (order == kRelaxed) {                                    \
    asm volatile(instruction ".relaxed" rest : __VA_ARGS__);  \
  } else {                                                    \
    asm volatile(instruction "." ordered rest : __VA_ARGS__); \
  }

 public:
  __device__ explicit ScratchRef(T& value) : at_{static_cast<unsigned>(__cvta_generic_to_shared(&value))} {}

  __device__ T load(cuda::memory_order order) const {
    T value;
    if constexpr (kWide) {
      ESKER_IN_ORDER("ld", "acquire", ".cta.shared.b64 %0, [%1];", "=l"(value) : "r"(at_) : "memory")
    } else {
      ESKER_IN_ORDER("ld", "acquire", ".cta.shared.b32 %0, [%1];", "=r"(value) : "r"(at_) : "memory")
    }
    return value;
  }
  __device__ void store(T value, cuda::memory_order order) const {
    if constexpr (kWide) {
      ESKER_IN_ORDER("st", "release", ".cta.shared.b64 [%0], %1;", : "r"(at_), "l"(value) : "memory")
    } else {
      ESKER_IN_ORDER("st", "release", ".cta.shared.b32 [%0], %1;", : "r"(at_), "r"(value) : "memory")
    }
  }
  __device__ T fetch_add(T delta, cuda::memory_order order) const {
    T before;
    if constexpr (kWide) {
      ESKER_IN_ORDER("atom", "acq_rel", ".cta.shared.add.u64 %0, [%1], %2;", "=l"(before)
                     : "r"(at_), "l"(delta)
                     : "memory")
    } else {
      ESKER_IN_ORDER("atom", "acq_rel", ".cta.shared.add.u32 %0, [%1], %2;", "=r"(before)
                     : "r"(at_), "r"(delta)
                     : "memory")
    }
    return before;
  }
  __device__ bool compare_exchange_strong(T& expected, T desired, cuda::memory_order order) const {
    T found;
    if constexpr (kWide) {
      ESKER_IN_ORDER("atom", "acq_rel", ".cta.shared.cas.b64 %0, [%1], %2, %3;", "=l"(found)
                     : "r"(at_), "l"(expected), "l"(desired)
                     : "memory")
    } else {
      ESKER_IN_ORDER("atom", "acq_rel", ".cta.shared.cas.b32 %0, [%1], %2, %3;", "=r"(found)
                     : "r"(at_), "r"(expected), "r"(desired)
                     : "memory")
    }
    const bool is_done = found == expected;
    expected = found;
    return is_done;
  }

#undef ESKER_IN_ORDER

 private:
  unsigned at_;
};

template <class T, Scope S>
using AtomicRef = std::conditional_t<
    S == Scope::kGroup, ScratchRef<T>,
    cuda::atomic_ref<T, S == Scope::kDevice ? cuda::thread_scope_device : cuda::thread_scope_system>>;

ESKER_HD inline void fence_system() {
  cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_system);
}

}  // namespace esker::detail

#endif
