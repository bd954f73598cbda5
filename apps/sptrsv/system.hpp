// Sparse lower triangular systems on the host: generated, solved row by row, checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sptrsv {

/// L x = right. Row i of L has entries [starts[i], starts[i + 1]) left of the diagonal, by their columns.
struct System {
  std::vector<std::uint32_t> starts{0}, columns;
  std::vector<double> values, diagonal, right;

  std::uint32_t rows() const { return static_cast<std::uint32_t>(diagonal.size()); }
  std::uint32_t entries() const { return static_cast<std::uint32_t>(columns.size()); }

  /// Makes the diagonal 1 more than the magnitudes of the row's entries.
  void dominate(std::uint32_t row);
  /// A right side at random.
  void draw_right(std::uint64_t seed);
};

/// `kind` is grid2 or grid3, rows of a square or cube whose neighbours come before them; random, up to 4 of
/// the hundredth of all rows before a row; chain, the row before it. About so many rows.
System make_system(const std::string& kind, std::uint64_t rows, std::uint64_t seed);

/// The columns of L without the diagonal: column i has rows [starts[i], starts[i + 1]), in order.
struct Below {
  std::vector<std::uint32_t> starts, rows;
};
Below below_of(const System& system);

/// Of each row 1, or 1 more than the most of the rows that it needs; the largest.
std::uint32_t levels_of(const System& system);

/// Forward substitution. Each row subtracts by fma() in the order of its columns, and divides.
std::vector<double> solve_serially(const System& system);

/// The largest |L x - right| of a row, over the sum of the magnitudes of what it adds: the componentwise
/// backward error (Higham, Accuracy and Stability of Numerical Algorithms, 7.2 and 8.1).
double backward_error(const System& system, const std::vector<double>& x);
/// What it is at most where rows are computed right, in any order: a row of n entries has n + 2 roundings.
double largest_error(const System& system);

}  // namespace sptrsv
