// Updates of device memory on CUDA: fetch_..., exchange() and compare_exchange(), which return what was
// there, and reduce_..., whose result is not used: by name, since of atomicAdd() the compiler (13.0) does not
// see in larger functions that the result is unused, and then the memory sends it back. Of the system's
// scope, since peers' GPUs may change the same word. Device pass only.
#pragma once

namespace esker::gpu {

#define ESKER_REDUCE(name, Type, instruction, constraint)                                                \
  __device__ inline void name(Type* at, Type value) {                                                    \
    asm volatile("red.relaxed.sys.global." instruction " [%0], %1;" ::"l"(__cvta_generic_to_global(at)), \
                 constraint(value)                                                                       \
                 : "memory");                                                                            \
  }
ESKER_REDUCE(reduce_add, unsigned int, "add.u32", "r")
ESKER_REDUCE(reduce_add, unsigned long long, "add.u64", "l")
ESKER_REDUCE(reduce_add, float, "add.f32", "f")
ESKER_REDUCE(reduce_add, double, "add.f64", "d")
ESKER_REDUCE(reduce_and, unsigned int, "and.b32", "r")
ESKER_REDUCE(reduce_and, unsigned long long, "and.b64", "l")
ESKER_REDUCE(reduce_or, unsigned int, "or.b32", "r")
ESKER_REDUCE(reduce_or, unsigned long long, "or.b64", "l")
ESKER_REDUCE(reduce_xor, unsigned int, "xor.b32", "r")
ESKER_REDUCE(reduce_xor, unsigned long long, "xor.b64", "l")
#undef ESKER_REDUCE

template <class T>
__device__ T fetch_add(T* at, T value) {
  return atomicAdd_system(at, value);
}
template <class T>
__device__ T fetch_and(T* at, T value) {
  return atomicAnd_system(at, value);
}
template <class T>
__device__ T fetch_or(T* at, T value) {
  return atomicOr_system(at, value);
}
template <class T>
__device__ T fetch_xor(T* at, T value) {
  return atomicXor_system(at, value);
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
