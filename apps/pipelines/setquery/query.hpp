// The SetQuery benchmark's table and the queries that are run on it (P. O'Neil, The Set Query Benchmark;
// XeFlow, section 6.4), as lanes evaluate them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <esker/lane.hpp>

namespace setquery {

enum ColumnNumber : std::uint32_t {
  kSeq,
  k500K,
  k250K,
  k100K,
  k40K,
  k10K,
  k1K,
  k100,
  k25,
  k10,
  k5,
  k4,
  k2,
  kColumns
};
inline constexpr const char* kColumnNames[kColumns] = {
    "KSEQ", "K500K", "K250K", "K100K", "K40K", "K10K", "K1K", "K100", "K25", "K10", "K5", "K4", "K2"};
/// Values are 1 to this, at random; KSEQ's are the rows' numbers.
inline constexpr std::uint32_t kCardinalities[kColumns] = {
    0, 500'000, 250'000, 100'000, 40'000, 10'000, 1'000, 100, 25, 10, 5, 4, 2};

/// Of Q4: what it selects.
struct Row {
  std::uint32_t seq, k500k;
};

struct Range {
  std::uint32_t least, greatest;
};
/// The column's value is in one of the ranges; or, negated, in none.
struct Predicate {
  static constexpr std::uint32_t kMost = 5;
  std::uint32_t column = 0, n_ranges = 0;
  Range ranges[kMost] = {};
  bool is_negated = false;

  ESKER_HD bool holds(std::uint32_t value) const {
    bool is_in = false;
    for (std::uint32_t i = 0; i < n_ranges; ++i)
      is_in = is_in || (ranges[i].least <= value && value <= ranges[i].greatest);
    return is_in != is_negated;
  }
};

enum class Answer : std::uint32_t { kCount, kSum, kRows };

/// What all of the predicates hold for: its number, the sum of its K1K, or KSEQ and K500K of each.
struct Query {
  static constexpr std::uint32_t kMost = 5;
  Predicate predicates[kMost];
  std::uint32_t n = 0;
  Answer answer = Answer::kCount;

  Query& add(const Predicate& predicate) {
    predicates[n++] = predicate;
    return *this;
  }
};

inline Predicate equals(std::uint32_t column, std::uint32_t value) {
  return {column, 1, {{value, value}}, false};
}
inline Predicate differs(std::uint32_t column, std::uint32_t value) {
  return {column, 1, {{value, value}}, true};
}

/// The ten conditions of Q4, of which A takes three in a row and B five.
inline std::vector<Predicate> conditions() {
  return {equals(k2, 1),
          {k100, 1, {{81, 100}}, false},
          {k10K, 1, {{2000, 3000}}, false},
          equals(k5, 3),
          {k25, 2, {{11, 11}, {19, 19}}, false},
          equals(k4, 3),
          {k100, 1, {{1, 40}}, false},
          {k1K, 1, {{850, 950}}, false},
          equals(k10, 7),
          {k25, 1, {{3, 4}}, false}};
}

/// The columns that a query is run with in turn, as KN.
inline std::vector<std::uint32_t> columns_of(const std::string& query) {
  if (query == "Q1") return {kSeq, k500K, k250K, k100K, k40K, k10K, k1K, k100, k25, k10, k5, k4, k2};
  if (query == "Q2A" || query == "Q2B")
    return {kSeq, k500K, k250K, k100K, k40K, k10K, k1K, k100, k25, k10, k5, k4};
  if (query == "Q3A" || query == "Q3B") return {k500K, k250K, k100K, k40K, k10K, k100, k25, k10, k5, k4};
  return {kSeq};  // Q4 has no KN
}

/// `query` is "Q1" to "Q4B"; `kn` its column; `first` the first of Q4's conditions, below 10. Predicates that
/// hold for few rows come first. Q3's ranges of KSEQ are those of a table of a million rows, scaled.
inline Query query_of(const std::string& query, std::uint32_t kn, std::uint32_t first, std::uint64_t rows) {
  Query q;
  const auto part = [&](std::uint64_t from, std::uint64_t to) {
    return Range{static_cast<std::uint32_t>(rows * from / 100), static_cast<std::uint32_t>(rows * to / 100)};
  };
  if (query == "Q1") return q.add(equals(kn, 2));
  if (query == "Q2A") return q.add(equals(kn, 3)).add(equals(k2, 2));
  if (query == "Q2B") return q.add(equals(k2, 2)).add(differs(kn, 3));
  if (query == "Q3A" || query == "Q3B") {
    q.answer = Answer::kSum;
    q.add(query == "Q3A"
              ? Predicate{kSeq, 1, {part(40, 50)}, false}
              : Predicate{
                    kSeq, 5, {part(40, 41), part(42, 43), part(44, 45), part(46, 47), part(48, 50)}, false});
    return q.add(equals(kn, 3));
  }
  q.answer = Answer::kRows;
  const std::vector<Predicate> all = conditions();
  for (std::uint32_t i = 0; i < (query == "Q4A" ? 3u : 5u); ++i) q.add(all[(first + i) % all.size()]);
  const auto fraction = [](const Predicate& p) {
    std::uint32_t values = 0;
    for (std::uint32_t i = 0; i < p.n_ranges; ++i) values += p.ranges[i].greatest - p.ranges[i].least + 1;
    return static_cast<double>(values) / kCardinalities[p.column];
  };
  std::stable_sort(q.predicates, q.predicates + q.n,
                   [&](const Predicate& a, const Predicate& b) { return fraction(a) < fraction(b); });
  return q;
}

}  // namespace setquery
