// Whether the paper's programs have computed what they should.
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "kernels.hpp"
#include "program.hpp"

namespace plan_apps {

namespace transfer = esker::transfer;

namespace {

bool is_close(double value, double expected, double scale, double tolerance) {
  return std::abs(value - expected) <= tolerance * (scale + std::abs(expected));
}

}  // namespace

bool Program::is_right() const {
  if (is_synthetic()) return is_synthetic_right();
  if (shape_.graph == "horner") return is_horner_right();
  if (shape_.graph == "cholesky") return is_cholesky_right();
  if (shape_.graph == "matmul") return is_matmul_right();
  return is_cg_right();
}

bool Program::is_synthetic_right() const {
  std::vector<std::vector<std::uint32_t>> values(graph_.operands());
  const auto words_of = [&](std::uint32_t i) {
    const std::span<float> at = plan_.host(operands_[i]);
    const auto* const words = reinterpret_cast<const std::uint32_t*>(at.data());
    return std::vector<std::uint32_t>(words, words + at.size());
  };
  for (std::uint32_t i = 0; i < graph_.operands(); ++i) {
    if (graph_.operand(i).on_entry) values[i] = words_of(i);
  }
  for (std::uint32_t k = 0; k < graph_.kernels(); ++k) {
    std::vector<std::uint32_t> sums(operands_[graph_.writes(k).front()].size, k);
    for (const std::uint32_t read : graph_.reads(k)) {
      for (std::uint64_t i = 0; i < sums.size(); ++i) sums[i] = mixed(sums[i], values[read][i]);
    }
    std::uint32_t number = 0;
    for (const std::uint32_t written : graph_.writes(k)) {
      values[written] = sums;
      for (std::uint32_t& word : values[written]) word = mixed(word, number);
      ++number;
    }
  }
  for (std::uint32_t i = 0; i < graph_.operands(); ++i) {
    if (graph_.operand(i).on_exit && words_of(i) != values[i]) return false;
  }
  return true;
}

bool Program::is_horner_right() const {
  const std::uint32_t degree = shape_.n == 0 ? 10 : shape_.n;
  const std::span<float> x = values_of("x"), result = values_of("s0");
  std::vector<double> sum(x.size(), 0), power(x.size(), 1);  // by powers, not by Horner's rule
  for (std::uint32_t i = 0; i <= degree; ++i) {
    const std::span<float> a = values_of(fmt::format("a{}", i));
    for (std::size_t j = 0; j < x.size(); ++j) {
      sum[j] += static_cast<double>(a[j]) * power[j];
      power[j] *= static_cast<double>(x[j]);
    }
  }
  for (std::size_t j = 0; j < x.size(); ++j) {
    if (!is_close(static_cast<double>(result[j]), sum[j], 1, 1e-5)) return false;
  }
  return true;
}

bool Program::is_cholesky_right() const {
  const std::uint32_t tiles = shape_.n == 0 ? 4 : shape_.n, n = tiles * side_;
  // The whole matrix, column by column. Large ones by a few rows of L L^T.
  const auto element = [&](char letter, std::uint32_t i, std::uint32_t j) {
    const std::string name = letter + std::to_string(i / side_) + std::to_string(j / side_);
    return static_cast<double>(values_of(name)[i % side_ * side_ + j % side_]);
  };
  const std::uint32_t step = n <= 256 ? 1 : n / 64;
  for (std::uint32_t i = 0; i < n; i += step) {
    for (std::uint32_t j = 0; j <= i; j += step) {
      double sum = 0;
      for (std::uint32_t tile = 0; tile <= j / side_; ++tile) {
        const std::span<float> a = values_of(fmt::format("L{}{}", i / side_, tile));
        const std::span<float> b = values_of(fmt::format("L{}{}", j / side_, tile));
        for (std::uint32_t m = 0; m < side_ && tile * side_ + m <= j; ++m)
          sum +=
              static_cast<double>(a[i % side_ * side_ + m]) * static_cast<double>(b[j % side_ * side_ + m]);
      }
      // A sum of n products in floats: rounding grows with n, at random signs by its root.
      if (!is_close(sum, element('A', i, j), n, 1e-5 * std::sqrt(n / 256.0 + 1))) return false;
    }
  }
  return true;
}

bool Program::is_matmul_right() const {
  const std::uint32_t n = 2 * side_;
  const auto tile = [&](char letter, std::uint32_t i, std::uint32_t j) {
    return values_of(letter + std::to_string(i) + std::to_string(j));
  };
  const std::uint32_t step = n <= 128 ? 1 : n / 64;
  for (std::uint32_t i = 0; i < n; i += step) {
    for (std::uint32_t j = 0; j < n; j += step) {
      double sum = 0;
      for (std::uint32_t t = 0; t < 2; ++t) {
        const std::span<float> a = tile('A', i / side_, t), b = tile('B', t, j / side_);
        for (std::uint32_t k = 0; k < side_; ++k)
          sum +=
              static_cast<double>(a[i % side_ * side_ + k]) * static_cast<double>(b[k * side_ + j % side_]);
      }
      const double value =
          static_cast<double>(tile('C', i / side_, j / side_)[i % side_ * side_ + j % side_]);
      if (!is_close(value, sum, n, 1e-5)) return false;
    }
  }
  return true;
}

bool Program::is_cg_right() const {
  // One iteration in double precision, from the same state; and the residual that x' really has.
  const std::span<float> p = values_of("p"), x = values_of("x"), r = values_of("r");
  const std::size_t n = p.size();
  std::vector<double> q(n);
  double pq = 0, rho = 0, new_rho = 0;
  for (std::size_t i = 0; i < n; ++i) {
    q[i] = laplace(p, i);
    pq += static_cast<double>(p[i]) * q[i];
    rho += static_cast<double>(r[i]) * static_cast<double>(r[i]);
  }
  const double alpha = rho / pq;
  std::vector<double> new_r(n);
  for (std::size_t i = 0; i < n; ++i) {
    new_r[i] = static_cast<double>(r[i]) - alpha * q[i];
    new_rho += new_r[i] * new_r[i];
  }
  const std::span<float> x1 = values_of("x'"), r1 = values_of("r'"), p1 = values_of("p'");
  for (std::size_t i = 0; i < n; ++i) {
    if (!is_close(static_cast<double>(x1[i]), static_cast<double>(x[i]) + alpha * static_cast<double>(p[i]),
                  1, 1e-4))
      return false;
    if (!is_close(static_cast<double>(r1[i]), new_r[i], 1, 1e-4)) return false;
    if (!is_close(static_cast<double>(p1[i]), new_r[i] + new_rho / rho * static_cast<double>(p[i]), 1, 1e-4))
      return false;
  }
  return is_close(static_cast<double>(values_of("rho'")[0]), new_rho, 1, 1e-3);
}

}  // namespace plan_apps
