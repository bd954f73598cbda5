// Updates of device memory whose result nobody wants, on CUDA: by name, since of atomicAdd() the compiler
// (13.0) does not see in larger functions that the result is unused, and then the memory sends it back.
// Device pass only.
#pragma once

namespace esker::gpu {

__device__ inline void reduce_add(unsigned int* at, unsigned int value) {
  asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(at)), "r"(value)
               : "memory");
}
__device__ inline void reduce_add(unsigned long long* at, unsigned long long value) {
  asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(at)), "l"(value)
               : "memory");
}
__device__ inline void reduce_add(float* at, float value) {
  asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(__cvta_generic_to_global(at)), "f"(value)
               : "memory");
}
__device__ inline void reduce_add(double* at, double value) {
  asm volatile("red.relaxed.gpu.global.add.f64 [%0], %1;" ::"l"(__cvta_generic_to_global(at)), "d"(value)
               : "memory");
}
__device__ inline void reduce_and(unsigned int* at, unsigned int value) {
  asm volatile("red.relaxed.gpu.global.and.b32 [%0], %1;" ::"l"(__cvta_generic_to_global(at)), "r"(value)
               : "memory");
}
__device__ inline void reduce_and(unsigned long long* at, unsigned long long value) {
  asm volatile("red.relaxed.gpu.global.and.b64 [%0], %1;" ::"l"(__cvta_generic_to_global(at)), "l"(value)
               : "memory");
}
__device__ inline void reduce_or(unsigned int* at, unsigned int value) {
  asm volatile("red.relaxed.gpu.global.or.b32 [%0], %1;" ::"l"(__cvta_generic_to_global(at)), "r"(value)
               : "memory");
}
__device__ inline void reduce_or(unsigned long long* at, unsigned long long value) {
  asm volatile("red.relaxed.gpu.global.or.b64 [%0], %1;" ::"l"(__cvta_generic_to_global(at)), "l"(value)
               : "memory");
}
__device__ inline void reduce_xor(unsigned int* at, unsigned int value) {
  asm volatile("red.relaxed.gpu.global.xor.b32 [%0], %1;" ::"l"(__cvta_generic_to_global(at)), "r"(value)
               : "memory");
}
__device__ inline void reduce_xor(unsigned long long* at, unsigned long long value) {
  asm volatile("red.relaxed.gpu.global.xor.b64 [%0], %1;" ::"l"(__cvta_generic_to_global(at)), "l"(value)
               : "memory");
}

}  // namespace esker::gpu
