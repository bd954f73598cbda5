// Atomics on CUDA, by their PTX instructions: <cuda/atomic> takes longer to compile than a small user's
// program. Device pass only; the names that device/atomic.hpp asks for.
#pragma once

#include <cstdint>
#include <type_traits>

#include <esker/device/platform.hpp>
#include <esker/device/scope.hpp>

#if defined(ESKER_ON_CUDA)

namespace esker::detail {

enum class Order { kRelaxed, kAcquire, kRelease, kAcqRel };
inline constexpr Order kRelaxed = Order::kRelaxed;
inline constexpr Order kAcquire = Order::kAcquire;
inline constexpr Order kRelease = Order::kRelease;
inline constexpr Order kAcqRel = Order::kAcqRel;
inline constexpr auto kReleaseAfterFence = kRelaxed;

// One instruction, relaxed or in the order that the operation has else. Operands are asm's, from the outputs
// on.
#define ESKER_IN_ORDER(instruction, ordered, rest, ...)       \
  if (order == kRelaxed) {                                    \
    asm volatile(instruction ".relaxed" rest : __VA_ARGS__);  \
  } else {                                                    \
    asm volatile(instruction "." ordered rest : __VA_ARGS__); \
  }

/// A value as the instructions take it.
template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
template <class T>
__device__ BitsOf<T> to_bits(T value) {
  BitsOf<T> bits;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
__device__ T from_bits(BitsOf<T> bits) {
  T value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

/// A word in scratchpad, by the instructions for scratchpad. Those for any address take longer, and
/// nothing says that they keep their order among scratchpad's own
/// (GroupLane::scratch_fence()).
template <class T>
class ScratchRef {
  static constexpr bool kWide = sizeof(T) == 8;
  using Bits = BitsOf<T>;

 public:
  __device__ explicit ScratchRef(T& value) : at_{static_cast<unsigned>(__cvta_generic_to_shared(&value))} {}

  __device__ T load(Order order) const {
    Bits value;
    if constexpr (kWide) {
      ESKER_IN_ORDER("ld", "acquire", ".cta.shared.b64 %0, [%1];", "=l"(value) : "r"(at_) : "memory")
    } else {
      ESKER_IN_ORDER("ld", "acquire", ".cta.shared.b32 %0, [%1];", "=r"(value) : "r"(at_) : "memory")
    }
    return from_bits<T>(value);
  }
  __device__ void store(T desired, Order order) const {
    const Bits value = to_bits(desired);
    if constexpr (kWide) {
      ESKER_IN_ORDER("st", "release", ".cta.shared.b64 [%0], %1;", : "r"(at_), "l"(value) : "memory")
    } else {
      ESKER_IN_ORDER("st", "release", ".cta.shared.b32 [%0], %1;", : "r"(at_), "r"(value) : "memory")
    }
  }
  __device__ T fetch_add(T delta, Order order) const {
    static_assert(std::is_integral_v<T>);
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
  __device__ bool compare_exchange_strong(T& expected, T desired, Order order) const {
    const Bits before = to_bits(expected), after = to_bits(desired);
    Bits found;
    if constexpr (kWide) {
      ESKER_IN_ORDER("atom", "acq_rel", ".cta.shared.cas.b64 %0, [%1], %2, %3;", "=l"(found)
                     : "r"(at_), "l"(before), "l"(after)
                     : "memory")
    } else {
      ESKER_IN_ORDER("atom", "acq_rel", ".cta.shared.cas.b32 %0, [%1], %2, %3;", "=r"(found)
                     : "r"(at_), "r"(before), "r"(after)
                     : "memory")
    }
    const bool is_done = found == before;
    expected = from_bits<T>(found);
    return is_done;
  }

 private:
  unsigned at_;
};

/// A word in device memory, a peer's or the host's, in the scope of the device or of the system.
template <class T, Scope S>
class MemoryRef {
  static constexpr bool kWide = sizeof(T) == 8;
  using Bits = BitsOf<T>;

#define ESKER_IN_SCOPE(instruction, ordered, rest, ...)            \
  if constexpr (S == Scope::kDevice) {                             \
    ESKER_IN_ORDER(instruction, ordered, ".gpu" rest, __VA_ARGS__) \
  } else {                                                         \
    ESKER_IN_ORDER(instruction, ordered, ".sys" rest, __VA_ARGS__) \
  }

 public:
  __device__ explicit MemoryRef(T& value) : at_{&value} {}

  __device__ T load(Order order) const {
    Bits value;
    if constexpr (kWide) {
      ESKER_IN_SCOPE("ld", "acquire", ".b64 %0, [%1];", "=l"(value) : "l"(at_) : "memory")
    } else {
      ESKER_IN_SCOPE("ld", "acquire", ".b32 %0, [%1];", "=r"(value) : "l"(at_) : "memory")
    }
    return from_bits<T>(value);
  }
  __device__ void store(T desired, Order order) const {
    const Bits value = to_bits(desired);
    if constexpr (kWide) {
      ESKER_IN_SCOPE("st", "release", ".b64 [%0], %1;", : "l"(at_), "l"(value) : "memory")
    } else {
      ESKER_IN_SCOPE("st", "release", ".b32 [%0], %1;", : "l"(at_), "r"(value) : "memory")
    }
  }
  __device__ T fetch_add(T delta, Order order) const {
    static_assert(std::is_integral_v<T>);
    T before;
    if constexpr (kWide) {
      ESKER_IN_SCOPE("atom", "acq_rel", ".add.u64 %0, [%1], %2;", "=l"(before)
                     : "l"(at_), "l"(delta)
                     : "memory")
    } else {
      ESKER_IN_SCOPE("atom", "acq_rel", ".add.u32 %0, [%1], %2;", "=r"(before)
                     : "l"(at_), "r"(delta)
                     : "memory")
    }
    return before;
  }
  __device__ bool compare_exchange_strong(T& expected, T desired, Order order) const {
    const Bits before = to_bits(expected), after = to_bits(desired);
    Bits found;
    if (order == kAcquire) {
      if constexpr (kWide) {
        ESKER_IN_SCOPE("atom", "acquire", ".cas.b64 %0, [%1], %2, %3;", "=l"(found)
                       : "l"(at_), "l"(before), "l"(after)
                       : "memory")
      } else {
        ESKER_IN_SCOPE("atom", "acquire", ".cas.b32 %0, [%1], %2, %3;", "=r"(found)
                       : "l"(at_), "r"(before), "r"(after)
                       : "memory")
      }
    } else {
      if constexpr (kWide) {
        ESKER_IN_SCOPE("atom", "acq_rel", ".cas.b64 %0, [%1], %2, %3;", "=l"(found)
                       : "l"(at_), "l"(before), "l"(after)
                       : "memory")
      } else {
        ESKER_IN_SCOPE("atom", "acq_rel", ".cas.b32 %0, [%1], %2, %3;", "=r"(found)
                       : "l"(at_), "r"(before), "r"(after)
                       : "memory")
      }
    }
    const bool is_done = found == before;
    expected = from_bits<T>(found);
    return is_done;
  }

 private:
  T* at_;
};
#undef ESKER_IN_SCOPE
#undef ESKER_IN_ORDER

// Either by its scope: a group's words are in scratchpad.
template <class T, Scope S>
struct RefOf {
  using Type = MemoryRef<T, S>;
};
template <class T>
struct RefOf<T, Scope::kGroup> {
  using Type = ScratchRef<T>;
};
template <class T, Scope S>
using AtomicRef = typename RefOf<T, S>::Type;

ESKER_HD inline void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

}  // namespace esker::detail

#endif
