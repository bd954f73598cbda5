// Atomics in a simulated GPU's build, both passes: the CPU's, before which a lane may be interrupted. The names
// that device/atomic.hpp asks for.
#pragma once

#include <atomic>
#include <esker/device/platform.hpp>
#include <esker/device/scope.hpp>
#include <esker/device/simulated/lanes.hpp>

namespace esker::detail {

inline constexpr auto kRelaxed = std::memory_order_relaxed;
inline constexpr auto kAcquire = std::memory_order_acquire;
inline constexpr auto kRelease = std::memory_order_release;
inline constexpr auto kAcqRel = std::memory_order_acq_rel;
// Costs nothing here, and ThreadSanitizer knows no fences.
inline constexpr auto kReleaseAfterFence = kRelease;

template <class T, Scope>
class AtomicRef : public std::atomic_ref<T> {
 public:
  explicit AtomicRef(T& value) : std::atomic_ref<T>(value) { simulated::interrupt(); }
};

inline void fence_system() { std::atomic_thread_fence(std::memory_order_acq_rel); }

}  // namespace esker::detail
