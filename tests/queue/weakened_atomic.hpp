// An atomic word that can leave out one end of one release/acquire pair.
#pragma once

#include <esker/device/atomic.hpp>

namespace esker {

/// The four ends of a queue's two pairs. A producer acquires only [reuse] and releases only [fill], a
/// consumer the other way round, so the side that calls tells which pair the call belongs to.
enum class End { kNone, kFillRelease, kFillAcquire, kReuseRelease, kReuseAcquire };

inline End weakened_end = End::kNone;  // set before the threads start
inline thread_local bool is_producer = false;

template <class T>
class WeakenedAtomic : public SystemAtomic<T> {
 public:
  T load_acquire() const {
    const End end = is_producer ? End::kReuseAcquire : End::kFillAcquire;
    return end == weakened_end ? this->load_relaxed() : SystemAtomic<T>::load_acquire();
  }
  void store_release(T desired) {
    const End end = is_producer ? End::kFillRelease : End::kReuseRelease;
    if (end == weakened_end) {
      this->store_relaxed(desired);
    } else {
      SystemAtomic<T>::store_release(desired);
    }
  }
  /// A release too, on the host.
  void store_after_fence(T desired) { store_release(desired); }
  bool compare_exchange_acquire(T& expected, T desired) {
    const End end = is_producer ? End::kReuseAcquire : End::kFillAcquire;
    return end == weakened_end ? this->compare_exchange_relaxed(expected, desired)
                               : SystemAtomic<T>::compare_exchange_acquire(expected, desired);
  }
};

}  // namespace esker
