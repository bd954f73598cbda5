// The whole matrix in one process, for serial references.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include <esker/esker.hpp>

#include "../graph/prefix_sums.hpp"
#include "matrix.hpp"

namespace sparse {

struct SerialMatrix {
  std::vector<std::uint64_t> first, columns;

  std::uint64_t rows() const { return first.size() - 1; }
  std::span<const std::uint64_t> row(std::uint64_t r) const {
    return std::span(columns).subspan(first[r], first[r + 1] - first[r]);
  }
};

/// Of what for_each_entry(visit) shows, twice: visit(row, column).
template <class ForEachEntry>
SerialMatrix serial_matrix(std::uint64_t rows, const ForEachEntry& for_each_entry) {
  SerialMatrix matrix{std::vector<std::uint64_t>(rows + 2), {}};
  auto& first = matrix.first;  // of the row before, so that what is counted and stored ends as it has to be
  for_each_entry([&](std::uint64_t row, std::uint64_t) { ++first[row + 2]; });
  std::partial_sum(first.begin(), first.end(), first.begin());
  matrix.columns.resize(first.back());
  for_each_entry([&](std::uint64_t row, std::uint64_t column) { matrix.columns[first[row + 1]++] = column; });
  first.pop_back();
  return matrix;
}

inline SerialMatrix transposed(const SerialMatrix& matrix) {
  return serial_matrix(matrix.rows(), [&](const auto& visit) {
    for (std::uint64_t r = 0; r < matrix.rows(); ++r) {
      for (const std::uint64_t column : matrix.row(r)) visit(column, r);
    }
  });
}

/// Local. Of this PE's rows those that have other entries than `expected`, whatever their order.
inline std::uint64_t wrong_rows(esker::Runtime& rt, const Matrix& found, const SerialMatrix& expected) {
  const std::uint64_t mine = found.rows.count(rt.pe());
  const std::vector<std::uint64_t> first = graph::read_first(rt, found.first, mine);
  std::vector<std::uint64_t> columns(found.entries);
  rt.heap().read(found.columns, 0, std::span(columns));
  std::uint64_t wrong = 0;
  for (std::uint64_t k = 0; k < mine; ++k) {
    const auto row = std::span(columns).subspan(first[k], first[k + 1] - first[k]);
    const auto theirs = expected.row(found.rows.global_index(rt.pe(), k));
    std::vector<std::uint64_t> sorted(theirs.begin(), theirs.end());
    std::sort(row.begin(), row.end());
    std::sort(sorted.begin(), sorted.end());
    wrong += std::equal(row.begin(), row.end(), sorted.begin(), sorted.end()) ? 0 : 1;
  }
  return wrong;
}

}  // namespace sparse
