// A side that multiplies matrices, beside Esker's.
#pragma once

#include <cstdint>
#include <functional>

namespace esker::bench {

#if defined(ESKER_BENCH_CUBLAS)
/// c = a b by cuBLAS on the current device, of square matrices in rows of `side`, in single precision all
/// through. Errors. std::runtime_error with the library's status.
std::function<void(const float* a, const float* b, float* c)> multiply_by_cublas(std::uint32_t side);
#endif

}  // namespace esker::bench
