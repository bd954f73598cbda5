// Words that two sides share: atomics with the memory order in the name and the scope in the type.
#pragma once

#include <cstdint>

#include <esker/device/platform.hpp>
#include <esker/device/scope.hpp>

// Each back end gives in esker::detail: AtomicRef<T, Scope>, with load, store, fetch_add and
// compare_exchange_strong; kRelaxed, kAcquire, kRelease and kAcqRel, which these take; kReleaseAfterFence, the
// order of a store that fence_system() has made a release; and fence_system().
#if defined(ESKER_ON_CUDA)
#include <esker/device/cuda/atomic.hpp>
#elif defined(ESKER_ON_HIP)
#include <esker/device/hip/atomic.hpp>
#elif defined(ESKER_DEVICE_SIMULATED)
#include <esker/device/simulated/atomic.hpp>
#else
#include <esker/device/cpu/atomic.hpp>
#endif

namespace esker {

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
  ESKER_HD void store_after_fence(T desired) { ref().store(desired, detail::kReleaseAfterFence); }
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
  ESKER_HD detail::AtomicRef<T, S> ref() const { return detail::AtomicRef<T, S>(value_); }

  mutable T value_{};
};

/// What this lane has seen and written before happens before what follows, for all who see that, on any
/// device: for one release of several words.
ESKER_HD inline void fence_system() { detail::fence_system(); }

template <class T>
using SystemAtomic = Atomic<T, Scope::kSystem>;
template <class T>
using DeviceAtomic = Atomic<T, Scope::kDevice>;
template <class T>
using GroupAtomic = Atomic<T, Scope::kGroup>;

}  // namespace esker
