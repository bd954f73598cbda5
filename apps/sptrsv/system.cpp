// Sparse lower triangular systems on the host.
#include "system.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "../inputs/random.hpp"

namespace sptrsv {
namespace {

/// In (-1, 1), not small.
double value_of(std::uint64_t word) {
  const double magnitude = 0.25 + 0.75 * inputs::unit(word);
  return (word & 1) != 0 ? magnitude : -magnitude;
}

/// Appends a row whose entries are in these columns.
class Builder {
 public:
  explicit Builder(std::uint64_t seed) : random_{inputs::Random(seed).stream(2)} {}
  void add(std::span<const std::uint32_t> columns) {
    for (const std::uint32_t column : columns) {
      system.values.push_back(value_of(random_[system.columns.size()]));
      system.columns.push_back(column);
    }
    system.starts.push_back(static_cast<std::uint32_t>(system.columns.size()));
    system.diagonal.push_back(0);
    system.dominate(system.rows() - 1);
  }
  System system;

 private:
  inputs::RandomStream random_;
};

}  // namespace

void System::dominate(std::uint32_t row) {
  double sum = 1;
  for (std::uint32_t e = starts[row]; e < starts[row + 1]; ++e) sum += std::abs(values[e]);
  diagonal[row] = sum;
}

void System::draw_right(std::uint64_t seed) {
  const inputs::RandomStream random = inputs::Random(seed).stream(1);
  right.clear();
  for (std::uint32_t i = 0; i < rows(); ++i) right.push_back(value_of(random[i]));
}

System make_system(const std::string& kind, std::uint64_t rows, std::uint64_t seed) {
  Builder builder(seed);
  const double n = static_cast<double>(rows);
  const auto side =
      static_cast<std::uint32_t>(std::max(1.0, std::round(kind == "grid3" ? std::cbrt(n) : std::sqrt(n))));
  if (kind == "grid2" || kind == "grid3") {
    const std::uint32_t plane = side * side, all = kind == "grid3" ? plane * side : plane;
    for (std::uint32_t i = 0; i < all; ++i) {
      std::vector<std::uint32_t> columns;
      if (i >= plane) columns.push_back(i - plane);
      if (i % plane >= side) columns.push_back(i - side);
      if (i % side != 0) columns.push_back(i - 1);
      builder.add(columns);
    }
  } else {
    const inputs::RandomStream random = inputs::Random(seed).stream(3);
    const std::uint64_t window = kind == "chain" ? 1 : std::max<std::uint64_t>(1, rows / 100);
    for (std::uint32_t i = 0; i < rows; ++i) {
      std::vector<std::uint32_t> columns;
      const std::uint64_t before = std::min<std::uint64_t>(i, window);
      for (std::uint64_t k = 0; k < std::min<std::uint64_t>(before, 4); ++k)
        columns.push_back(i - 1 - static_cast<std::uint32_t>(inputs::scaled(random[4 * i + k], before)));
      std::sort(columns.begin(), columns.end());
      columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
      builder.add(columns);
    }
  }
  builder.system.draw_right(seed);
  return builder.system;
}

Below below_of(const System& system) {
  Below below;
  below.starts.resize(system.rows() + std::size_t{1}, 0);
  for (const std::uint32_t column : system.columns) ++below.starts[column + std::size_t{1}];
  std::partial_sum(below.starts.begin(), below.starts.end(), below.starts.begin());
  below.rows.resize(system.entries());
  std::vector<std::uint32_t> next = below.starts;
  for (std::uint32_t row = 0; row < system.rows(); ++row) {
    for (std::uint32_t e = system.starts[row]; e < system.starts[row + 1]; ++e)
      below.rows[next[system.columns[e]]++] = row;
  }
  return below;
}

std::uint32_t levels_of(const System& system) {
  std::vector<std::uint32_t> levels(system.rows());
  std::uint32_t most = 0;
  for (std::uint32_t i = 0; i < system.rows(); ++i) {
    std::uint32_t below = 0;
    for (std::uint32_t e = system.starts[i]; e < system.starts[i + 1]; ++e)
      below = std::max(below, levels[system.columns[e]]);
    levels[i] = below + 1;
    most = std::max(most, levels[i]);
  }
  return most;
}

std::vector<double> solve_serially(const System& system) {
  std::vector<double> x(system.rows());
  for (std::uint32_t i = 0; i < system.rows(); ++i) {
    double sum = system.right[i];
    for (std::uint32_t e = system.starts[i]; e < system.starts[i + 1]; ++e)
      sum = std::fma(-system.values[e], x[system.columns[e]], sum);
    x[i] = sum / system.diagonal[i];
  }
  return x;
}

double backward_error(const System& system, const std::vector<double>& x) {
  double most = 0;
  for (std::uint32_t i = 0; i < system.rows(); ++i) {
    long double sum = static_cast<long double>(system.diagonal[i]) * x[i] - system.right[i];
    long double scale =
        std::abs(static_cast<long double>(system.diagonal[i]) * x[i]) + std::abs(system.right[i]);
    for (std::uint32_t e = system.starts[i]; e < system.starts[i + 1]; ++e) {
      const long double term = static_cast<long double>(system.values[e]) * x[system.columns[e]];
      sum += term;
      scale += std::abs(term);
    }
    if (scale == 0) continue;
    const auto error = static_cast<double>(std::abs(sum) / scale);
    if (!std::isfinite(error)) return std::numeric_limits<double>::infinity();
    most = std::max(most, error);
  }
  return most;
}

double largest_error(const System& system) {
  std::uint32_t most = 0;
  for (std::uint32_t i = 0; i < system.rows(); ++i)
    most = std::max(most, system.starts[i + 1] - system.starts[i]);
  return (most + 2) * 0x1p-53 * 1.01;  // and terms of second order
}

}  // namespace sptrsv
