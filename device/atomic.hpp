// Words that two sides share: atomics with the memory order in the name and the scope in the type.
#pragma once

#include <cstdint>

#include <esker/device/platform.hpp>

#if defined(ESKER_ON_CUDA)
#include <cuda/atomic>
#include <type_traits>
#elif !defined(ESKER_ON_HIP)
#include <atomic>
#endif
#if defined(ESKER_DEVICE_SIMULATED)
#include <esker/device/simulated/lanes.hpp>
#endif

namespace esker {

/// Who takes part. On the CPU all three are the same; on a device a narrower scope is cheaper and
/// orders less. A group's words stand in scratchpad.
enum class Scope { kGroup, kDevice, kSystem };

namespace detail {

#if defined(ESKER_ON_CUDA)

/// A word in scratchpad, by the instructions for scratchpad: cuda::atomic_ref has those for any address,
/// which take longer, and of which nothing says that they keep their order among scratchpad's own
/// (GroupLane::scratch_fence()).
template <class T>
class ScratchRef {
 public:
  __device__ explicit ScratchRef(T& value) : at_{static_cast<unsigned>(__cvta_generic_to_shared(&value))} {}

  __device__ T load(cuda::memory_order order) const {
    T value;
    if constexpr (sizeof(T) == 8) {
      if (order == cuda::memory_order_relaxed) {
        asm volatile("ld.relaxed.cta.shared.b64 %0, [%1];" : "=l"(value) : "r"(at_) : "memory");
      } else {
        asm volatile("ld.acquire.cta.shared.b64 %0, [%1];" : "=l"(value) : "r"(at_) : "memory");
      }
    } else if (order == cuda::memory_order_relaxed) {
      asm volatile("ld.relaxed.cta.shared.b32 %0, [%1];" : "=r"(value) : "r"(at_) : "memory");
    } else {
      asm volatile("ld.acquire.cta.shared.b32 %0, [%1];" : "=r"(value) : "r"(at_) : "memory");
    }
    return value;
  }
  __device__ void store(T value, cuda::memory_order order) const {
    if constexpr (sizeof(T) == 8) {
      if (order == cuda::memory_order_relaxed) {
        asm volatile("st.relaxed.cta.shared.b64 [%0], %1;" ::"r"(at_), "l"(value) : "memory");
      } else {
        asm volatile("st.release.cta.shared.b64 [%0], %1;" ::"r"(at_), "l"(value) : "memory");
      }
    } else if (order == cuda::memory_order_relaxed) {
      asm volatile("st.relaxed.cta.shared.b32 [%0], %1;" ::"r"(at_), "r"(value) : "memory");
    } else {
      asm volatile("st.release.cta.shared.b32 [%0], %1;" ::"r"(at_), "r"(value) : "memory");
    }
  }
  __device__ T fetch_add(T delta, cuda::memory_order order) const {
    T before;
    if constexpr (sizeof(T) == 8) {
      if (order == cuda::memory_order_relaxed) {
        asm volatile("atom.relaxed.cta.shared.add.u64 %0, [%1], %2;"
                     : "=l"(before)
                     : "r"(at_), "l"(delta)
                     : "memory");
      } else {
        asm volatile("atom.acq_rel.cta.shared.add.u64 %0, [%1], %2;"
                     : "=l"(before)
                     : "r"(at_), "l"(delta)
                     : "memory");
      }
    } else if (order == cuda::memory_order_relaxed) {
      asm volatile("atom.relaxed.cta.shared.add.u32 %0, [%1], %2;"
                   : "=r"(before)
                   : "r"(at_), "r"(delta)
                   : "memory");
    } else {
      asm volatile("atom.acq_rel.cta.shared.add.u32 %0, [%1], %2;"
                   : "=r"(before)
                   : "r"(at_), "r"(delta)
                   : "memory");
    }
    return before;
  }
  __device__ bool compare_exchange_strong(T& expected, T desired, cuda::memory_order order) const {
    T found;
    if constexpr (sizeof(T) == 8) {
      if (order == cuda::memory_order_relaxed) {
        asm volatile("atom.relaxed.cta.shared.cas.b64 %0, [%1], %2, %3;"
                     : "=l"(found)
                     : "r"(at_), "l"(expected), "l"(desired)
                     : "memory");
      } else {
        asm volatile("atom.acq_rel.cta.shared.cas.b64 %0, [%1], %2, %3;"
                     : "=l"(found)
                     : "r"(at_), "l"(expected), "l"(desired)
                     : "memory");
      }
    } else if (order == cuda::memory_order_relaxed) {
      asm volatile("atom.relaxed.cta.shared.cas.b32 %0, [%1], %2, %3;"
                   : "=r"(found)
                   : "r"(at_), "r"(expected), "r"(desired)
                   : "memory");
    } else {
      asm volatile("atom.acq_rel.cta.shared.cas.b32 %0, [%1], %2, %3;"
                   : "=r"(found)
                   : "r"(at_), "r"(expected), "r"(desired)
                   : "memory");
    }
    const bool is_done = found == expected;
    expected = found;
    return is_done;
  }

 private:
  unsigned at_;
};
template <class T, Scope S>
using AtomicRef = std::conditional_t<
    S == Scope::kGroup, ScratchRef<T>,
    cuda::atomic_ref<T, S == Scope::kDevice ? cuda::thread_scope_device : cuda::thread_scope_system>>;
inline constexpr auto kRelaxed = cuda::memory_order_relaxed;
inline constexpr auto kAcquire = cuda::memory_order_acquire;
inline constexpr auto kRelease = cuda::memory_order_release;
inline constexpr auto kAcqRel = cuda::memory_order_acq_rel;

#elif defined(ESKER_ON_HIP)

// clang wants the order and the scope as constants, so each order is a branch that folds away.
template <class T, Scope S>
class AtomicRef {
 public:
  ESKER_HD explicit AtomicRef(T& value) : value_{value} {}
  ESKER_HD T load(int order) const {
    return order == __ATOMIC_ACQUIRE ? __hip_atomic_load(&value_, __ATOMIC_ACQUIRE, kScope)
                                     : __hip_atomic_load(&value_, __ATOMIC_RELAXED, kScope);
  }
  ESKER_HD void store(T desired, int order) const {
    if (order == __ATOMIC_RELEASE) {
      __hip_atomic_store(&value_, desired, __ATOMIC_RELEASE, kScope);
    } else {
      __hip_atomic_store(&value_, desired, __ATOMIC_RELAXED, kScope);
    }
  }
  ESKER_HD T fetch_add(T delta, int order) const {
    return order == __ATOMIC_ACQ_REL ? __hip_atomic_fetch_add(&value_, delta, __ATOMIC_ACQ_REL, kScope)
                                     : __hip_atomic_fetch_add(&value_, delta, __ATOMIC_RELAXED, kScope);
  }
  ESKER_HD bool compare_exchange_strong(T& expected, T desired, int order) const {
    if (order == __ATOMIC_ACQ_REL) {
      return __hip_atomic_compare_exchange_strong(&value_, &expected, desired, __ATOMIC_ACQ_REL,
                                                  __ATOMIC_ACQUIRE, kScope);
    }
    return order == __ATOMIC_ACQUIRE
               ? __hip_atomic_compare_exchange_strong(&value_, &expected, desired, __ATOMIC_ACQUIRE,
                                                      __ATOMIC_ACQUIRE, kScope)
               : __hip_atomic_compare_exchange_strong(&value_, &expected, desired, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED, kScope);
  }

 private:
  static constexpr int kScope = S == Scope::kGroup    ? __HIP_MEMORY_SCOPE_WORKGROUP
                                : S == Scope::kDevice ? __HIP_MEMORY_SCOPE_AGENT
                                                      : __HIP_MEMORY_SCOPE_SYSTEM;
  T& value_;
};
inline constexpr int kRelaxed = __ATOMIC_RELAXED;
inline constexpr int kAcquire = __ATOMIC_ACQUIRE;
inline constexpr int kRelease = __ATOMIC_RELEASE;
inline constexpr int kAcqRel = __ATOMIC_ACQ_REL;

#else

template <class T, Scope>
using AtomicRef = std::atomic_ref<T>;
inline constexpr auto kRelaxed = std::memory_order_relaxed;
inline constexpr auto kAcquire = std::memory_order_acquire;
inline constexpr auto kRelease = std::memory_order_release;
inline constexpr auto kAcqRel = std::memory_order_acq_rel;

#endif

}  // namespace detail

/// An atomic word of 4 or 8 bytes.
///
/// Ordering. Every call names its order; nothing is sequentially consistent by default, so a review
/// can search for a release and find its acquire.
template <class T, Scope S>
class Atomic {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "the widths every target has");

 public:
  Atomic() = default;
  ESKER_HD explicit constexpr Atomic(T value) : value_{value} {}
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  ESKER_HD T load_relaxed() const { return ref().load(detail::kRelaxed); }
  ESKER_HD T load_acquire() const { return ref().load(detail::kAcquire); }
  ESKER_HD void store_relaxed(T desired) { ref().store(desired, detail::kRelaxed); }
  ESKER_HD void store_release(T desired) { ref().store(desired, detail::kRelease); }
  /// A release for which fence_system() has been called.
  ESKER_HD void store_after_fence(T desired) {
#if defined(ESKER_ON_CUDA) || defined(ESKER_ON_HIP)
    ref().store(desired, detail::kRelaxed);
#else
    ref().store(desired, detail::kRelease);  // costs nothing here, and ThreadSanitizer knows no fences
#endif
  }
  ESKER_HD T fetch_add_relaxed(T delta) { return ref().fetch_add(delta, detail::kRelaxed); }
  ESKER_HD T fetch_add_acq_rel(T delta) { return ref().fetch_add(delta, detail::kAcqRel); }
  /// On failure `expected` holds the value found.
  ESKER_HD bool compare_exchange_relaxed(T& expected, T desired) {
    return ref().compare_exchange_strong(expected, desired, detail::kRelaxed);
  }
  ESKER_HD bool compare_exchange_acquire(T& expected, T desired) {
    return ref().compare_exchange_strong(expected, desired, detail::kAcquire);
  }
  ESKER_HD bool compare_exchange_acq_rel(T& expected, T desired) {
    return ref().compare_exchange_strong(expected, desired, detail::kAcqRel);
  }

 private:
  ESKER_HD detail::AtomicRef<T, S> ref() const {
#if defined(ESKER_DEVICE_SIMULATED)
    simulated::interrupt();
#endif
    return detail::AtomicRef<T, S>(value_);
  }

  mutable T value_{};
};

/// What this lane has seen and written before happens before what follows, for all who see that, on any
/// device: for one release of several words.
ESKER_HD inline void fence_system() {
#if defined(ESKER_ON_CUDA)
  cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_system);
#elif defined(ESKER_ON_HIP)
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "");
#else
  std::atomic_thread_fence(std::memory_order_acq_rel);
#endif
}

template <class T>
using SystemAtomic = Atomic<T, Scope::kSystem>;
template <class T>
using DeviceAtomic = Atomic<T, Scope::kDevice>;
template <class T>
using GroupAtomic = Atomic<T, Scope::kGroup>;

}  // namespace esker
