// The words of CUDA's language that Esker's device code uses, for a C++ compiler. Simulated pass only.
#pragma once

#include <atomic>
#include <esker/device/simulated/lanes.hpp>

#define __host__
#define __device__
#define __global__
#define __launch_bounds__(...)
// A thread runs one group at a time, so scratchpad is what a thread has for itself.
#define __shared__ static thread_local

#define blockIdx (::esker::simulated::here.group)
#define threadIdx (::esker::simulated::here.lane)
#define gridDim (::esker::simulated::here.groups)
#define blockDim (::esker::simulated::here.lanes)

namespace esker::simulated {

template <class T>
T atomicCAS_system(T* at, T expected, T desired) {
  __atomic_compare_exchange_n(at, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}

template <class T>
T atomicAdd_system(T* at, T value) {
  return std::atomic_ref<T>(*at).fetch_add(value, std::memory_order_relaxed);
}
template <class T>
T atomicAnd_system(T* at, T value) {
  return __atomic_fetch_and(at, value, __ATOMIC_RELAXED);
}
template <class T>
T atomicOr_system(T* at, T value) {
  return __atomic_fetch_or(at, value, __ATOMIC_RELAXED);
}
template <class T>
T atomicXor_system(T* at, T value) {
  return __atomic_fetch_xor(at, value, __ATOMIC_RELAXED);
}
template <class T>
T atomicExch_system(T* at, T value) {
  return __atomic_exchange_n(at, value, __ATOMIC_RELAXED);
}

}  // namespace esker::simulated
