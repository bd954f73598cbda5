// A rival: cuSPARSE's triangular solver.
#include "solves.hpp"

#include <cuda_runtime.h>
#include <cusparse.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace esker::bench {
namespace {

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

void check(cusparseStatus_t status, const char* what) {
  if (status != CUSPARSE_STATUS_SUCCESS)
    throw std::runtime_error(std::string(what) + ": " + cusparseGetErrorString(status));
}

template <class T>
class Memory {
 public:
  explicit Memory(std::size_t n) {
    void* at = nullptr;
    check(cudaMalloc(&at, (n == 0 ? 1 : n) * sizeof(T)), "memory for cuSPARSE");
    at_ = static_cast<T*>(at);
  }
  explicit Memory(const std::vector<T>& host) : Memory{host.size()} {
    check(cudaMemcpy(at_, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice), "a matrix's copy");
  }
  ~Memory() { (void)cudaFree(at_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  T* data() const { return at_; }

 private:
  T* at_ = nullptr;
};

/// With the diagonal last in each row.
struct Whole {
  std::vector<std::int32_t> starts{0}, columns;
  std::vector<double> values;

  explicit Whole(const sptrsv::System& system) {
    for (std::uint32_t row = 0; row < system.rows(); ++row) {
      for (std::uint32_t e = system.starts[row]; e < system.starts[row + 1]; ++e) {
        columns.push_back(static_cast<std::int32_t>(system.columns[e]));
        values.push_back(system.values[e]);
      }
      columns.push_back(static_cast<std::int32_t>(row));
      values.push_back(system.diagonal[row]);
      starts.push_back(static_cast<std::int32_t>(columns.size()));
    }
  }
};

}  // namespace

class CusparseSolver::State {
 public:
  State(const sptrsv::System& system, const Whole& whole)
      : rows_{system.rows()},
        starts_{whole.starts},
        columns_{whole.columns},
        values_{whole.values},
        right_{system.right},
        x_{system.rows()} {
    check(cusparseCreate(&handle_), "cusparseCreate");
    check(cusparseCreateCsr(&matrix_, rows_, rows_, static_cast<std::int64_t>(whole.columns.size()),
                            starts_.data(), columns_.data(), values_.data(), CUSPARSE_INDEX_32I,
                            CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F),
          "cusparseCreateCsr");
    cusparseFillMode_t lower = CUSPARSE_FILL_MODE_LOWER;
    cusparseDiagType_t diagonal = CUSPARSE_DIAG_TYPE_NON_UNIT;
    check(cusparseSpMatSetAttribute(matrix_, CUSPARSE_SPMAT_FILL_MODE, &lower, sizeof lower),
          "the fill mode");
    check(cusparseSpMatSetAttribute(matrix_, CUSPARSE_SPMAT_DIAG_TYPE, &diagonal, sizeof diagonal),
          "the diagonal");
    check(cusparseCreateDnVec(&b_vector_, rows_, right_.data(), CUDA_R_64F), "cusparseCreateDnVec");
    check(cusparseCreateDnVec(&x_vector_, rows_, x_.data(), CUDA_R_64F), "cusparseCreateDnVec");
    check(cusparseSpSV_createDescr(&plan_), "cusparseSpSV_createDescr");
    std::size_t bytes = 0;
    check(cusparseSpSV_bufferSize(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &one_, matrix_, b_vector_,
                                  x_vector_, CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT, plan_, &bytes),
          "cusparseSpSV_bufferSize");
    buffer_ = std::make_unique<Memory<std::byte>>(bytes);
    check(cudaDeviceSynchronize(), "cuSPARSE");
    const auto start = std::chrono::steady_clock::now();
    check(cusparseSpSV_analysis(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &one_, matrix_, b_vector_,
                                x_vector_, CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT, plan_, buffer_->data()),
          "cusparseSpSV_analysis");
    check(cudaDeviceSynchronize(), "cusparseSpSV_analysis");
    analysis_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  ~State() {
    if (plan_ != nullptr) (void)cusparseSpSV_destroyDescr(plan_);
    if (x_vector_ != nullptr) (void)cusparseDestroyDnVec(x_vector_);
    if (b_vector_ != nullptr) (void)cusparseDestroyDnVec(b_vector_);
    if (matrix_ != nullptr) (void)cusparseDestroySpMat(matrix_);
    if (handle_ != nullptr) (void)cusparseDestroy(handle_);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  double analysis_seconds() const { return analysis_seconds_; }
  void solve() {
    check(cusparseSpSV_solve(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &one_, matrix_, b_vector_, x_vector_,
                             CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT, plan_),
          "cusparseSpSV_solve");
    check(cudaDeviceSynchronize(), "cusparseSpSV_solve");
  }
  std::vector<double> solution() const {
    std::vector<double> x(static_cast<std::size_t>(rows_));
    check(cudaMemcpy(x.data(), x_.data(), x.size() * sizeof(double), cudaMemcpyDeviceToHost), "the solution");
    return x;
  }

 private:
  const std::int64_t rows_;
  const double one_ = 1;
  Memory<std::int32_t> starts_, columns_;
  Memory<double> values_, right_, x_;
  std::unique_ptr<Memory<std::byte>> buffer_;
  cusparseHandle_t handle_ = nullptr;
  cusparseSpMatDescr_t matrix_ = nullptr;
  cusparseDnVecDescr_t b_vector_ = nullptr, x_vector_ = nullptr;
  cusparseSpSVDescr_t plan_ = nullptr;
  double analysis_seconds_ = 0;
};

CusparseSolver::CusparseSolver(const sptrsv::System& system)
    : state_{std::make_unique<State>(system, Whole(system))} {}
CusparseSolver::~CusparseSolver() = default;
double CusparseSolver::analysis_seconds() const { return state_->analysis_seconds(); }
void CusparseSolver::solve() { state_->solve(); }
std::vector<double> CusparseSolver::solution() const { return state_->solution(); }

}  // namespace esker::bench
