// Sides that solve triangular systems, beside Esker's.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "../../apps/sptrsv/system.hpp"

namespace esker::bench {

#if defined(ESKER_BENCH_CUSPARSE)
/// cuSPARSE's SpSV on the current device, of a matrix in compressed rows.
///
/// Errors. std::runtime_error, with the library's words or CUDA's.
class CusparseSolver {
 public:
  explicit CusparseSolver(const sptrsv::System& system);
  ~CusparseSolver();
  CusparseSolver(const CusparseSolver&) = delete;
  CusparseSolver& operator=(const CusparseSolver&) = delete;

  /// Of cusparseSpSV_analysis(), which depends on the matrix alone.
  double analysis_seconds() const;
  /// cusparseSpSV_solve(), until the device is idle.
  void solve();
  std::vector<double> solution() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};
#endif

}  // namespace esker::bench
