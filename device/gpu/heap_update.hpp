// Updates of heap words by many lanes at a time: hardware atomics, and compare-exchange where there is none.
#pragma once

#include <cstdint>
#include <type_traits>

#include <esker/device/platform.hpp>

#if defined(ESKER_ON_CUDA)
#include <esker/device/cuda/reduce.hpp>
#elif defined(ESKER_ON_HIP)
#include <esker/device/hip/reduce.hpp>
#elif defined(ESKER_ON_SIMULATED)
#include <esker/device/simulated/reduce.hpp>
#endif

#if defined(ESKER_ON_GPU)

namespace esker::gpu {

template <class T>
using Unsigned = std::conditional_t<sizeof(T) == 4, unsigned int, unsigned long long>;

/// `*at = next(*at)` in one step.
template <class T, class Next>
__device__ void exchange_loop(T* at, Next next) {
  using U = Unsigned<T>;
  auto* const word = reinterpret_cast<U*>(at);
  U seen = *const_cast<volatile U*>(word);
  for (;;) {
    T old;
    __builtin_memcpy(&old, &seen, sizeof old);
    const T value = next(old);
    U desired;
    __builtin_memcpy(&desired, &value, sizeof desired);
    const U found = atomicCAS_system(word, seen, desired);
    if (found == seen) return;
    seen = found;
  }
}

template <class T>
__device__ void add(T* at, T value) {
  if constexpr (std::is_integral_v<T>) {
    reduce_add(reinterpret_cast<Unsigned<T>*>(at), static_cast<Unsigned<T>>(value));
  } else {
    reduce_add(at, value);
  }
}
template <class T>
__device__ void lower_to(T* at, T value) {
  exchange_loop(at, [value](T old) { return value < old ? value : old; });
}
template <class T>
__device__ void raise_to(T* at, T value) {
  exchange_loop(at, [value](T old) { return old < value ? value : old; });
}
template <class T>
__device__ void bit_and(T* at, T value) {
  reduce_and(reinterpret_cast<Unsigned<T>*>(at), static_cast<Unsigned<T>>(value));
}
template <class T>
__device__ void bit_or(T* at, T value) {
  reduce_or(reinterpret_cast<Unsigned<T>*>(at), static_cast<Unsigned<T>>(value));
}
template <class T>
__device__ void bit_xor(T* at, T value) {
  reduce_xor(reinterpret_cast<Unsigned<T>*>(at), static_cast<Unsigned<T>>(value));
}
/// A load of 1 to 8 bytes, whole, that other lanes may race with.
template <class T>
__device__ T load(const T* at) {
  return *const_cast<const volatile T*>(at);
}
/// A store of 1 to 8 bytes, whole, that other lanes may race with.
template <class T>
__device__ void store(T* at, T value) {
  *at = value;
}

}  // namespace esker::gpu

#endif
