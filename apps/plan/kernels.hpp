// What kernels of the paper's programs do, written once for the host and the device.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include <esker/lane.hpp>

namespace plan_apps {

/// Linear work that shows every mistake: each word of each result mixes that word of all inputs.
ESKER_HD inline std::uint32_t mixed(std::uint32_t sum, std::uint32_t word) {
  return (((sum << 5) + sum) ^ word) + 0x9e3779b9u;
}

struct Synthetic {
  static constexpr std::uint32_t kMost = 8;
  const std::uint32_t* in[kMost];
  std::uint32_t* out[kMost];
  std::uint32_t ins, outs, seed;
  ESKER_HD void at(std::uint64_t i) const {
    std::uint32_t sum = seed;
    for (std::uint32_t r = 0; r < ins; ++r) sum = mixed(sum, in[r][i]);
    for (std::uint32_t w = 0; w < outs; ++w) out[w][i] = mixed(sum, w);
  }
  ESKER_HD void operator()(esker::Lane lane) const { at(lane.global_id()); }
  void on_host(std::uint64_t words) const;
};

struct Multiply {
  const float *a, *b;
  float* c;
  ESKER_HD void operator()(esker::Lane lane) const {
    c[lane.global_id()] = a[lane.global_id()] * b[lane.global_id()];
  }
};
struct Sum {
  const float *a, *b;
  float* c;
  ESKER_HD void operator()(esker::Lane lane) const {
    c[lane.global_id()] = a[lane.global_id()] + b[lane.global_id()];
  }
};

// Tiles of n x n, row by row.

/// C = A B.
struct TileProduct {
  const float *a, *b;
  float* c;
  std::uint32_t n;
  ESKER_HD void operator()(esker::Lane lane) const {
    const std::uint64_t i = lane.global_id() / n, j = lane.global_id() % n;
    float sum = 0;
    for (std::uint32_t k = 0; k < n; ++k) sum += a[i * n + k] * b[std::uint64_t{k} * n + j];
    c[lane.global_id()] = sum;
  }
};
/// D = C - A B^T: GEMM and, with A = B, SYRK of a factorization.
struct TileUpdate {
  const float *c, *a, *b;
  float* d;
  std::uint32_t n;
  ESKER_HD void at(std::uint64_t id) const {
    const std::uint64_t i = id / n, j = id % n;
    float sum = c[id];
    for (std::uint32_t k = 0; k < n; ++k) sum -= a[i * n + k] * b[j * n + k];
    d[id] = sum;
  }
  ESKER_HD void operator()(esker::Lane lane) const { at(lane.global_id()); }
};
/// X L^T = A, a row a lane.
struct TileSolve {
  const float *a, *l;
  float* x;
  std::uint32_t n;
  ESKER_HD void operator()(esker::Lane lane) const {
    const float* const from = a + lane.global_id() * n;
    float* const row = x + lane.global_id() * n;
    for (std::uint32_t j = 0; j < n; ++j) {
      float sum = from[j];
      for (std::uint32_t k = 0; k < j; ++k) sum -= row[k] * l[std::uint64_t{j} * n + k];
      row[j] = sum / l[std::uint64_t{j} * n + j];
    }
  }
};

/// The matrix of conjugate gradients: 2 on the diagonal and a little more, -1 beside it.
inline double laplace(std::span<const float> p, std::size_t i) {
  return 2.05 * static_cast<double>(p[i]) - (i > 0 ? static_cast<double>(p[i - 1]) : 0) -
         (i + 1 < p.size() ? static_cast<double>(p[i + 1]) : 0);
}

/// The steps of conjugate gradients on vectors; scalars are operands of one element.
/// Partial sums, each lane its own; then one group's sum of these.
struct DotParts {
  const float *a, *b;
  double* partial;
  std::uint64_t n;
  ESKER_HD void operator()(esker::Lane lane) const {
    double sum = 0;
    for (std::uint64_t i = lane.global_id(); i < n; i += lane.lanes())
      sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    partial[lane.global_id()] = sum;
  }
};
struct DotSum {
  const double* partial;
  std::uint64_t n;
  float* sum;
  ESKER_HD void operator()(esker::GroupLane& lane) const {
    double mine = 0;
    for (std::uint64_t i = lane.lane(); i < n; i += lane.group_lanes()) mine += partial[i];
    const double all = lane.group().reduce(mine, esker::Sum{});
    if (lane.lane() == 0) *sum = static_cast<float>(all);
  }
};
struct Divide {
  const float *a, *b;
  float* c;
  ESKER_HD void operator()(esker::Lane) const { *c = *b == 0 ? 0 : *a / *b; }
};
/// y = x + sign alpha p.
struct Axpy {
  const float *x, *alpha, *p;
  float* y;
  float sign;
  ESKER_HD void operator()(esker::Lane lane) const {
    const std::uint64_t i = lane.global_id();
    y[i] = x[i] + sign * *alpha * p[i];
  }
};
/// p' = r + rho' / rho p.
struct Xpay {
  const float *r, *rho, *new_rho, *p;
  float* y;
  ESKER_HD void operator()(esker::Lane lane) const {
    const std::uint64_t i = lane.global_id();
    y[i] = r[i] + (*rho == 0 ? 0 : *new_rho / *rho) * p[i];
  }
};

}  // namespace plan_apps
