// Updates of device memory on HIP: reduce_... whose result is not used, and fetch_..., exchange() and
// compare_exchange(), which return what was there. Device pass only.
#pragma once

namespace esker::gpu {

template <class T>
__device__ void reduce_add(T* at, T value) {
  (void)atomicAdd(at, value);
}
template <class T>
__device__ void reduce_and(T* at, T value) {
  (void)atomicAnd(at, value);
}
template <class T>
__device__ void reduce_or(T* at, T value) {
  (void)atomicOr(at, value);
}
template <class T>
__device__ void reduce_xor(T* at, T value) {
  (void)atomicXor(at, value);
}

template <class T>
__device__ T fetch_add(T* at, T value) {
  return atomicAdd(at, value);
}
template <class T>
__device__ T fetch_and(T* at, T value) {
  return atomicAnd(at, value);
}
template <class T>
__device__ T fetch_or(T* at, T value) {
  return atomicOr(at, value);
}
template <class T>
__device__ T fetch_xor(T* at, T value) {
  return atomicXor(at, value);
}
template <class T>
__device__ T exchange(T* at, T value) {
  return atomicExch_system(at, value);
}
template <class T>
__device__ T compare_exchange(T* at, T expected, T desired) {
  return atomicCAS_system(at, expected, desired);
}

}  // namespace esker::gpu
