// Sparse lower triangular systems on the host.
#include "system.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "../harness/failure.hpp"
#include "../harness/output.hpp"
#include "../inputs/graph/graph_file.hpp"
#include "../inputs/random.hpp"

namespace sptrsv {
namespace {

constexpr std::uint64_t kMostRows = std::uint64_t{1} << 31;

/// In (-1, 1), not small.
double value_of(std::uint64_t word) {
  const double magnitude = 0.25 + 0.75 * inputs::unit(word);
  return (word & 1) != 0 ? magnitude : -magnitude;
}

void add_right(System& system, std::uint64_t seed) {
  const inputs::RandomStream random = inputs::Random(seed).stream(1);
  for (std::uint32_t i = 0; i < system.rows(); ++i) system.right.push_back(value_of(random[i]));
}

void dominate(System& system, std::uint32_t row) {
  double sum = 1;
  for (std::uint32_t e = system.starts[row]; e < system.starts[row + 1]; ++e)
    sum += std::abs(system.values[e]);
  system.diagonal[row] = sum;
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
    dominate(system, system.rows() - 1);
  }
  System system;

 private:
  inputs::RandomStream random_;
};

}  // namespace

System read_system(const std::string& path, bool is_dominant, std::uint64_t seed) {
  const inputs::GraphFile file(path);
  if (file.header().format != inputs::Format::kMatrixMarket)
    harness::usage("--matrix is a Matrix Market file (.mtx)");
  const std::uint64_t rows = *file.header().vertices;
  if (rows >= kMostRows || *file.header().entries >= kMostRows)
    harness::usage("the matrix has fewer than 2^31 rows and entries");
  struct Entry {
    std::uint32_t row, column;
    double value;
  };
  std::vector<Entry> entries;
  System system;
  system.diagonal.resize(rows, 0);
  file.check(file.for_each_edge({}, [&](const inputs::Edge& edge) {
    if (edge.from == edge.to) system.diagonal[edge.from] += edge.weight;
    if (edge.from > edge.to)
      entries.push_back(
          {static_cast<std::uint32_t>(edge.from), static_cast<std::uint32_t>(edge.to), edge.weight});
  }));
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.row != b.row ? a.row < b.row : a.column < b.column;
  });
  for (std::size_t e = 0; e < entries.size(); ++e) {
    const Entry& entry = entries[e];
    if (e > 0 && entries[e - 1].row == entry.row && entries[e - 1].column == entry.column) {
      system.values.back() += entry.value;  // a file may have an entry in parts
      continue;
    }
    while (system.starts.size() <= entry.row) system.starts.push_back(system.entries());
    system.columns.push_back(entry.column);
    system.values.push_back(entry.value);
  }
  while (system.starts.size() <= rows) system.starts.push_back(system.entries());
  for (std::uint32_t i = 0; i < system.rows(); ++i) {
    if (is_dominant || system.diagonal[i] == 0) dominate(system, i);
  }
  add_right(system, seed);
  return system;
}

System make_system(const std::string& kind, std::uint64_t rows, std::uint64_t seed) {
  if (rows == 0 || rows > kMostRows / 4) harness::usage("--rows is 1 to 2^29");
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
  add_right(builder.system, seed);
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
    if (!(error <= most)) most = error;  // what is no number stays
  }
  return most;
}

double largest_error(const System& system) {
  std::uint32_t most = 0;
  for (std::uint32_t i = 0; i < system.rows(); ++i)
    most = std::max(most, system.starts[i + 1] - system.starts[i]);
  return (most + 2) * 0x1p-53 * 1.01;  // and terms of second order
}

void write_system(const System& system, const std::vector<double>& x, const std::string& path) {
  std::string bytes;
  const auto add = [&](const auto& values) {
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof values[0]);
  };
  add(std::vector<std::uint32_t>{system.rows(), system.entries()});
  add(system.starts);
  add(system.columns);
  add(system.values);
  add(system.diagonal);
  add(system.right);
  add(x);
  harness::OutputFile file(path);
  file.write(bytes);
  file.close();
}

}  // namespace sptrsv
