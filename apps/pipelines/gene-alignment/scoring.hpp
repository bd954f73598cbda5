// Local alignment of two sequences of bases (Smith and Waterman, 1981): what a cell is worth, and which
// chunks of the target can be scored by themselves.
#pragma once

#include <cstdint>

#include <esker/lane.hpp>

namespace gene {

using Base = std::uint8_t;  // 0 to 3

inline constexpr std::int32_t kMatch = 5, kMismatch = -4, kGap = 12;  // linear gaps

ESKER_HD constexpr std::int32_t score_of(Base a, Base b) { return a == b ? kMatch : kMismatch; }
ESKER_HD constexpr std::int32_t larger(std::int32_t a, std::int32_t b) { return a > b ? a : b; }

/// Bases as they travel.
struct alignas(16) Bases {
  Base base[16];
};

/// The best cell of some: the largest score; of equal ones the leftmost column, then the topmost row. As one
/// word, so that the larger word is the better cell.
struct Hit {
  std::uint64_t word = 0;

  ESKER_HD static constexpr Hit at(std::int32_t score, std::uint32_t column, std::uint32_t row) {
    return {std::uint64_t(score) << 40 | std::uint64_t{0xffffff - column} << 16 | (0xffff - row)};
  }
  ESKER_HD constexpr std::int32_t score() const { return static_cast<std::int32_t>(word >> 40); }
  ESKER_HD constexpr std::uint32_t column() const {
    return 0xffffff - static_cast<std::uint32_t>(word >> 16 & 0xffffff);
  }
  ESKER_HD constexpr std::uint32_t row() const { return 0xffff - static_cast<std::uint32_t>(word & 0xffff); }
};
inline constexpr std::uint32_t kMostColumns = 1 << 24, kMostRows = 1 << 16;

/// The target in chunks. A chunk's scores are those of the whole matrix, because it is scored from `overlap`
/// columns before it: an alignment that is worth more than 0 has no more gaps in the query than its matches
/// pay for, so it is not longer than the overlap.
struct Chunks {
  std::uint32_t target_length, query_length, columns;  // of a chunk

  ESKER_HD constexpr std::uint32_t overlap() const { return query_length + query_length * kMatch / kGap; }
  ESKER_HD constexpr std::uint32_t count() const { return (target_length + columns - 1) / columns; }
  ESKER_HD constexpr std::uint32_t begin(std::uint64_t chunk) const {
    return static_cast<std::uint32_t>(chunk) * columns;
  }
  ESKER_HD constexpr std::uint32_t end(std::uint64_t chunk) const {
    return target_length - begin(chunk) < columns ? target_length : begin(chunk) + columns;
  }
  /// The first column that is scored.
  ESKER_HD constexpr std::uint32_t first(std::uint64_t chunk) const {
    return begin(chunk) < overlap() ? 0 : begin(chunk) - overlap();
  }
  /// The largest number of columns that are scored.
  constexpr std::uint32_t most() const {
    const std::uint64_t most = std::uint64_t{columns} + overlap();
    return most < target_length ? static_cast<std::uint32_t>(most) : target_length;
  }
};

}  // namespace gene
