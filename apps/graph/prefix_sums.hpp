// Counters on the heap to offsets: edges and slots of vertices are both laid out by them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include <esker/esker.hpp>

namespace graph {

/// Local. Element v is the sum of this PE's counts before v, for v from 0 to `count`, its last element.
inline std::vector<std::uint64_t> read_prefix_sums(esker::Runtime& rt,
                                                   esker::SymmetricArray<std::uint64_t> counts,
                                                   std::uint64_t count) {
  std::vector<std::uint64_t> sums(count + 1);
  rt.heap().read(counts, 0, std::span(sums).first(count));
  std::exclusive_scan(sums.begin(), sums.end(), sums.begin(), std::uint64_t{0});
  return sums;
}

/// Local. Where this PE's `rows` rows begin, and the last of them ends.
inline std::vector<std::uint64_t> read_first(esker::Runtime& rt, esker::SymmetricArray<std::uint64_t> first,
                                             std::uint64_t rows) {
  std::vector<std::uint64_t> mine(rows + 1);
  rt.heap().read(first, 0, std::span(mine));
  return mine;
}

}  // namespace graph
