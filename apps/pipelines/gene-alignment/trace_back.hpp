// The stage on the host: the alignment that ends in a cell.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scoring.hpp"

namespace gene {

/// Bases of the query and of the target, one below the other. `steps` goes from the first to the last: '='
/// two equal bases, 'X' two others, 'Q' and 'T' a base of the query or the target across from a gap.
struct Alignment {
  std::int32_t score = 0;
  std::uint32_t query_begin = 0, target_begin = 0;
  std::string steps;
};

/// The alignment that ends with the hit's row and column. It aligns backwards from there, column by column,
/// and has found the beginning when it has got all of the score.
inline Alignment trace_back(std::span<const Base> query, std::span<const Base> target, const Hit& hit) {
  const std::uint32_t rows = hit.row() + 1, columns = hit.column() + 1;
  std::vector<std::int32_t> last(rows + 1), now(rows + 1);
  std::vector<std::string> steps;  // for each column, for each row: the step that leads there
  steps.emplace_back(rows + 1, 'Q');
  for (std::uint32_t i = 0; i <= rows; ++i) last[i] = -static_cast<std::int32_t>(i) * kGap;
  for (std::uint32_t j = 1; j <= columns; ++j) {
    std::string& step = steps.emplace_back(rows + 1, 'T');
    now[0] = last[0] - kGap;
    for (std::uint32_t i = 1; i <= rows; ++i) {
      const Base a = query[rows - i], b = target[columns - j];
      now[i] = last[i - 1] + score_of(a, b);
      step[i] = a == b ? '=' : 'X';
      if (now[i - 1] - kGap > now[i]) {
        now[i] = now[i - 1] - kGap;
        step[i] = 'Q';
      }
      if (last[i] - kGap > now[i]) {
        now[i] = last[i] - kGap;
        step[i] = 'T';
      }
    }
    const auto found = std::find(now.begin(), now.end(), hit.score());
    if (found != now.end()) {
      auto i = static_cast<std::uint32_t>(found - now.begin());
      Alignment alignment{hit.score(), rows - i, columns - j, {}};
      while (i != 0 || j != 0) {
        const char c = steps[j][i];
        alignment.steps.push_back(c);
        if (c != 'T') --i;
        if (c != 'Q') --j;
      }
      return alignment;
    }
    last.swap(now);
  }
  return {};
}

}  // namespace gene
