// Updates of device memory whose result is not used, on a simulated GPU. Simulated pass only.
#pragma once

#include <atomic>
#include <esker/device/simulated/language.hpp>

namespace esker::gpu {

using simulated::atomicAdd_system, simulated::atomicAnd_system, simulated::atomicCAS_system,
    simulated::atomicExch_system, simulated::atomicOr_system, simulated::atomicXor_system;

template <class T>
void reduce_add(T* at, T value) {
  (void)std::atomic_ref<T>(*at).fetch_add(value, std::memory_order_relaxed);
}
template <class T>
void reduce_and(T* at, T value) {
  (void)std::atomic_ref<T>(*at).fetch_and(value, std::memory_order_relaxed);
}
template <class T>
void reduce_or(T* at, T value) {
  (void)std::atomic_ref<T>(*at).fetch_or(value, std::memory_order_relaxed);
}
template <class T>
void reduce_xor(T* at, T value) {
  (void)std::atomic_ref<T>(*at).fetch_xor(value, std::memory_order_relaxed);
}

}  // namespace esker::gpu
