// Updates of device memory on a simulated GPU: reduce_... whose result is not used, and fetch_..., exchange()
// and compare_exchange(), which return what was there. Simulated pass only.
#pragma once

#include <atomic>
#include <esker/device/simulated/language.hpp>

namespace esker::gpu {

using simulated::atomicCAS_system;

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

template <class T>
T fetch_add(T* at, T value) {
  return std::atomic_ref<T>(*at).fetch_add(value, std::memory_order_relaxed);
}
template <class T>
T fetch_and(T* at, T value) {
  return std::atomic_ref<T>(*at).fetch_and(value, std::memory_order_relaxed);
}
template <class T>
T fetch_or(T* at, T value) {
  return std::atomic_ref<T>(*at).fetch_or(value, std::memory_order_relaxed);
}
template <class T>
T fetch_xor(T* at, T value) {
  return std::atomic_ref<T>(*at).fetch_xor(value, std::memory_order_relaxed);
}
template <class T>
T exchange(T* at, T value) {
  return std::atomic_ref<T>(*at).exchange(value, std::memory_order_relaxed);
}
template <class T>
T compare_exchange(T* at, T expected, T desired) {
  return atomicCAS_system(at, expected, desired);
}

}  // namespace esker::gpu
