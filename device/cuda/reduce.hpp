// Updates of device memory whose result is not used, on CUDA: by name, since of atomicAdd() the compiler
// (13.0) does not see in larger functions that the result is unused, and then the memory sends it back. Of
// the system's scope, since peers' GPUs may change the same word. Device pass only.
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

}  // namespace esker::gpu
