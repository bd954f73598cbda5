// Updates of device memory whose result is not used, on HIP. Device pass only.
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

}  // namespace esker::gpu
