// A rival: cuBLAS's product of matrices.
#include <memory>
#include <stdexcept>
#include <string>

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "sgemm.hpp"

namespace esker::bench {
namespace {

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(what) + ": " + cublasGetStatusString(status));
}

}  // namespace

std::function<void(const float*, const float*, float*)> multiply_by_cublas(std::uint32_t side) {
  cublasHandle_t made = nullptr;
  check(cublasCreate(&made), "cuBLAS");
  const std::shared_ptr<cublasContext> handle(made, [](cublasHandle_t freed) { (void)cublasDestroy(freed); });
  check(cublasSetMathMode(made, CUBLAS_PEDANTIC_MATH), "cuBLAS in single precision");
  return [handle, n = static_cast<int>(side)](const float* a, const float* b, float* c) {
    const float one = 1, zero = 0;
    // cuBLAS has columns where we have rows: it multiplies the transposed matrices, in the other order.
    check(cublasSgemm(handle.get(), CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, b, n, a, n, &zero, c, n),
          "cuBLAS's product");
    if (cudaDeviceSynchronize() != cudaSuccess) throw std::runtime_error("cuBLAS's product failed");
  };
}

}  // namespace esker::bench
