// Matrices to multiply, and what their product must be.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace strassen {

/// splitmix64: a stream of random words over x = seed, seed + 1, ...
inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

/// A matrix on the host, in rows of `side`, of which n by n elements are not 0: "reals" are uniform between
/// -1 and 1, "units" are -1, 0 or 1.
struct Matrix {
  std::uint32_t n, side;
  std::vector<float> elements;

  static Matrix random(std::uint32_t n, std::uint32_t side, const std::string& values, std::uint64_t seed) {
    Matrix matrix{n, side, std::vector<float>(std::size_t{side} * side)};
    for (std::uint32_t r = 0; r < n; ++r) {
      for (std::uint32_t column = 0; column < n; ++column) {
        const std::uint64_t word = mix(seed * 0x1000000000000u + std::uint64_t{r} * n + column);
        matrix.elements[std::size_t{r} * side + column] =
            values == "units" ? static_cast<float>(word % 3) - 1
                              : static_cast<float>(static_cast<double>(word >> 40) * 0x1p-23 - 1);
      }
    }
    return matrix;
  }
  /// Its product with a vector, in double precision.
  std::vector<double> times(const std::vector<double>& x) const {
    std::vector<double> y(side);
    for (std::uint32_t r = 0; r < side; ++r) {
      const float* const row = elements.data() + std::size_t{r} * side;
      double sums[4] = {};
      for (std::uint32_t i = 0; i < side; ++i) sums[i % 4] += row[i] * x[i];
      y[r] = sums[0] + sums[1] + sums[2] + sums[3];
    }
    return y;
  }
};

/// How far an element may be from the product, with factors between -1 and 1.
///
/// With Strassen's method an error of rounding is at most (12^levels (k^2 + 5 k) - 5 n) u, where k is the
/// side of blocks that are multiplied as they are and u = 2^-24 (Higham, Accuracy and Stability of Numerical
/// Algorithms, 2nd edition, theorem 23.2). That is worst_error(). Errors have signs of their own, so what is
/// seen grows as the root: error() is 2 sqrt(12)^levels k u, some twenty times the standard deviation that is
/// measured with uniform factors. Factors of -1, 0 and 1 have no error at all while sums stay below 2^24.
struct Tolerance {
  double levels, base, n;
  double error() const { return 2 * std::pow(12.0, levels / 2) * base * 0x1p-24; }
  double worst_error() const { return (std::pow(12.0, levels) * (base * base + 5 * base) - 5 * n) * 0x1p-24; }
};

/// What is known of a product without computing it as tasks do.
///
/// Protocol Freivalds' check: for vectors x of 1 and -1, c x is a (b x). A wrong product passes one of them
/// by
///          chance with probability 1/2 at most, where factors have no error of rounding. With it, element i
///          of c x is off by sqrt(n) times what an element of c may be. Up to kMostPlain rows c is also
///          compared with a b, element by element.
class Expected {
 public:
  static constexpr std::uint32_t kVectors = 4, kMostPlain = 512;

  Expected(const Matrix& a, const Matrix& b, const std::string& values, const Tolerance& tolerance,
           std::uint64_t seed)
      : n_{a.n}, tolerance_{values == "units" ? 0 : tolerance.error()} {
    for (std::uint32_t v = 0; v < kVectors; ++v) {
      std::vector<double> x(a.side);
      for (std::uint32_t i = 0; i < a.side; ++i)
        x[i] = (mix((seed * kVectors + v) * 0x100000000u + i) & 1) != 0 ? 1 : -1;
      products_.push_back(a.times(b.times(x)));
      vectors_.push_back(std::move(x));
    }
    if (n_ <= kMostPlain) multiply(a, b);
  }

  /// Of an element of c, as far as it is known; and of elements of c x over sqrt(n).
  double largest_error() const { return largest_error_; }
  double tolerance() const { return tolerance_; }
  bool is(const Matrix& c) {
    largest_error_ = 0;
    for (std::uint32_t v = 0; v < kVectors; ++v) {
      const std::vector<double> y = c.times(vectors_[v]);
      for (std::uint32_t i = 0; i < c.side; ++i) note(y[i], products_[v][i], std::sqrt(double{1} * n_));
    }
    for (std::size_t i = 0; i < plain_.size(); ++i) note(c.elements[i], plain_[i], 1);
    return largest_error_ <= tolerance_;
  }

 private:
  void note(double seen, double expected, double scale) {
    const double error = std::abs(seen - expected) / scale;
    // What is no number is wrong.
    largest_error_ = error <= largest_error_ ? largest_error_ : std::isnan(error) ? HUGE_VAL : error;
  }
  void multiply(const Matrix& a, const Matrix& b) {
    const std::size_t side = a.side;
    plain_.assign(side * side, 0);
    for (std::size_t r = 0; r < n_; ++r) {
      for (std::size_t k = 0; k < n_; ++k) {
        const double left = a.elements[r * side + k];
        for (std::size_t i = 0; i < n_; ++i) plain_[r * side + i] += left * b.elements[k * side + i];
      }
    }
  }

  std::uint32_t n_;
  double tolerance_, largest_error_ = 0;
  std::vector<std::vector<double>> vectors_, products_;
  std::vector<double> plain_;
};

}  // namespace strassen
