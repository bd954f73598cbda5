// Atomics on the CPU: std::atomic_ref, for any scope. The names that device/atomic.hpp asks for.
#pragma once

#include <atomic>
#include <esker/device/platform.hpp>
#include <esker/device/scope.hpp>

namespace esker::detail {

inline constexpr auto kRelaxed = std::memory_order_relaxed;
inline constexpr auto kAcquire = std::memory_order_acquire;
inline constexpr auto kRelease = std::memory_order_release;
inline constexpr auto kAcqRel = std::memory_order_acq_rel;
// Costs nothing here, and ThreadSanitizer knows no fences.
inline constexpr auto kReleaseAfterFence = kRelease;

template <class T, Scope>
using AtomicRef = std::atomic_ref<T>;

ESKER_HD inline void fence_system() { std::atomic_thread_fence(std::memory_order_acq_rel); }

}  // namespace esker::detail
