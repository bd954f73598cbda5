// Loops that take the vectors of the machine that they run on.
#pragma once

// One copy of a function for machines with AVX-512, one with AVX2, one for all others; the program takes its
// own when it starts. Sanitizers have not started by then.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define FOR_EACH_VECTOR_WIDTH __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_EACH_VECTOR_WIDTH
#endif
