// The verifier: the whole matrix by the plain dynamic programme, and alignments by what they claim.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "scoring.hpp"
#include "trace_back.hpp"

namespace gene {

/// The best cell of each chunk, column by column of the whole target.
inline std::vector<Hit> serial_hits(std::span<const Base> query, std::span<const Base> target,
                                    std::uint32_t chunk_columns) {
  std::vector<Hit> hits((target.size() + chunk_columns - 1) / chunk_columns);
  std::vector<std::int32_t> h(query.size() + 1, 0);
  for (std::uint32_t j = 0; j < target.size(); ++j) {
    std::int32_t diagonal = 0, best = 0;
    std::uint32_t best_row = 0;
    for (std::uint32_t i = 1; i <= query.size(); ++i) {
      const std::int32_t here = std::max(
          {0, diagonal + (query[i - 1] == target[j] ? kMatch : kMismatch), h[i] - kGap, h[i - 1] - kGap});
      diagonal = h[i];
      h[i] = here;
      if (here > best) {
        best = here;
        best_row = i - 1;
      }
    }
    Hit& hit = hits[j / chunk_columns];
    if (best > hit.score()) hit = Hit::at(best, j, best_row);
  }
  return hits;
}

/// It ends where the hit is, and is worth what it says.
inline bool is_right(const Alignment& alignment, std::span<const Base> query, std::span<const Base> target,
                     const Hit& hit) {
  std::int64_t i = alignment.query_begin, j = alignment.target_begin, score = 0;
  for (const char step : alignment.steps) {
    const bool takes_query = step != 'T', takes_target = step != 'Q';
    if (takes_query && i >= static_cast<std::int64_t>(query.size())) return false;
    if (takes_target && j >= static_cast<std::int64_t>(target.size())) return false;
    if (takes_query && takes_target) {
      const bool is_equal = query[static_cast<std::size_t>(i)] == target[static_cast<std::size_t>(j)];
      if ((step == '=') != is_equal) return false;
      score += is_equal ? kMatch : kMismatch;
    } else {
      score -= kGap;
    }
    i += takes_query ? 1 : 0;
    j += takes_target ? 1 : 0;
  }
  return score == hit.score() && alignment.score == hit.score() && i == hit.row() + 1 &&
         j == hit.column() + 1;
}

}  // namespace gene
