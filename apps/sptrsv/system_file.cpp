// Sparse lower triangular systems from files.
#include "system_file.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "../harness/failure.hpp"
#include "../inputs/graph/graph_file.hpp"

namespace sptrsv {

namespace {
constexpr std::uint64_t kMostRows = std::uint64_t{1} << 31;
}

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
    if (is_dominant || system.diagonal[i] == 0) system.dominate(i);
  }
  system.draw_right(seed);
  return system;
}

}  // namespace sptrsv
