// The answers of a plain scan over the table's columns, row by row: what the queries are checked with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "query.hpp"
#include "table.hpp"

namespace setquery {

struct Answers {
  std::uint64_t count = 0, sum = 0;
  std::vector<Row> rows;  // in the order of the table
};

/// Whether condition `number`, from 0, of Q4 holds for a row.
inline bool condition_holds(const Table& t, std::uint64_t row, std::uint32_t number) {
  const auto k = [&](std::uint32_t column) { return t.value(column, row); };
  switch (number) {
    case 0:
      return k(k2) == 1;
    case 1:
      return k(k100) > 80;
    case 2:
      return k(k10K) >= 2000 && k(k10K) <= 3000;
    case 3:
      return k(k5) == 3;
    case 4:
      return k(k25) == 11 || k(k25) == 19;
    case 5:
      return k(k4) == 3;
    case 6:
      return k(k100) < 41;
    case 7:
      return k(k1K) >= 850 && k(k1K) <= 950;
    case 8:
      return k(k10) == 7;
    default:
      return k(k25) == 3 || k(k25) == 4;
  }
}

inline Answers serial_answers(const Table& t, const std::string& query, std::uint32_t kn,
                              std::uint32_t first) {
  const std::uint64_t n = t.rows();
  const auto is_between = [&](std::uint64_t row, std::uint64_t from, std::uint64_t to) {
    return t.value(kSeq, row) >= n * from / 100 && t.value(kSeq, row) <= n * to / 100;
  };
  Answers answers;
  for (std::uint64_t r = 0; r < n; ++r) {
    bool holds = true;
    if (query == "Q1") {
      holds = t.value(kn, r) == 2;
    } else if (query == "Q2A") {
      holds = t.value(k2, r) == 2 && t.value(kn, r) == 3;
    } else if (query == "Q2B") {
      holds = t.value(k2, r) == 2 && t.value(kn, r) != 3;
    } else if (query == "Q3A") {
      holds = is_between(r, 40, 50) && t.value(kn, r) == 3;
    } else if (query == "Q3B") {
      holds =
          t.value(kn, r) == 3 && (is_between(r, 40, 41) || is_between(r, 42, 43) || is_between(r, 44, 45) ||
                                  is_between(r, 46, 47) || is_between(r, 48, 50));
    } else {
      for (std::uint32_t i = 0; i < (query == "Q4A" ? 3u : 5u); ++i)
        holds = holds && condition_holds(t, r, (first + i) % 10);
    }
    if (!holds) continue;
    ++answers.count;
    if (query[1] == '3') answers.sum += t.value(k1K, r);
    if (query[1] == '4') answers.rows.push_back({t.value(kSeq, r), t.value(k500K, r)});
  }
  return answers;
}

}  // namespace setquery
