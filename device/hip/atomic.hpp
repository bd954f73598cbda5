// Atomics on HIP: clang's builtins. Device pass only; the names that device/atomic.hpp asks for.
#pragma once

#include <esker/device/platform.hpp>
#include <esker/device/scope.hpp>

#if defined(ESKER_ON_HIP)

namespace esker::detail {

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
inline constexpr int kReleaseAfterFence = kRelaxed;

ESKER_HD inline void fence_system() { __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, ""); }

}  // namespace esker::detail

#endif
