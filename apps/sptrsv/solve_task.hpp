// The task that solves one row of a sparse triangular system.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include <esker/device.hpp>
#include <esker/tasks.hpp>

namespace sptrsv {

/// Bits of an unknown that is not known yet: a signalling NaN, which no arithmetic returns.
inline constexpr std::uint64_t kNotYet = 0x7ff4'0000'0000'0000u;

/// A system in a device's memory, by pointers.
///
/// Ordering An unknown is its own flag: kNotYet, or its value. A row stores it and then counts down the rows
///          that need it, all relaxed. So a row whose count is 0 may find kNotYet for a moment, of a store
///          that has been made and is on its way; it reads again. A release and an acquire in place of that
///          would be two fences a row, on the longest path.
struct Rows {
  const std::uint32_t *starts, *columns;  // of L, left of the diagonal, by rows
  const double *values, *diagonal, *right;
  const std::uint32_t *below_starts, *below;     // of each column: the rows that need its unknown
  esker::DeviceAtomic<std::uint32_t>* missing;   // of each row: unknowns that it needs and that are not known
  esker::DeviceAtomic<std::uint64_t>* unknowns;  // their bits
};

/// One lane's: a row before the run.
struct PrepareRow {
  Rows rows;
  ESKER_HD void operator()(esker::Lane lane) const {
    const auto row = static_cast<std::uint32_t>(lane.global_id());
    rows.missing[row].store_relaxed(rows.starts[row + 1] - rows.starts[row]);
    rows.unknowns[row].store_relaxed(kNotYet);
  }
};

/// A row that needs nothing more: computes its unknown, and spawns the rows that have waited for it last.
struct SolveRow {
  Rows rows;
  esker::tasks::GraphChannel<std::uint32_t> ready;

  ESKER_HD void operator()(auto& task, const std::uint32_t& row) const {
    const std::uint32_t first = rows.below_starts[row], last = rows.below_starts[row + 1];
    // Early: it takes as long as memory takes, like all that solve() waits for.
    Few<std::uint32_t> below = load(rows.below, first, last);
    rows.unknowns[row].store_relaxed(std::bit_cast<std::uint64_t>(solve(row)));
    for (std::uint32_t at = first; at < last; at += kFew) {
      if (at != first) below = load(rows.below, at, last);
      std::uint32_t ready_ones = 0;
      for (std::uint32_t i = 0; i < kFew; ++i) {
        if (at + i < last && rows.missing[below.of[i]].fetch_add_relaxed(~0u) == 1) ready_ones |= 1u << i;
      }
      for (std::uint32_t i = at; ready_ones != 0; ++i, ready_ones >>= 1) {
        if ((ready_ones & 1) != 0) task.spawn(ready, rows.below[i]);
      }
    }
  }

 private:
  /// Of a row's entries, those that are on their way from memory at a time.
  static constexpr std::uint32_t kFew = 4;
  template <class T>
  struct Few {
    T of[kFew];
  };
  /// Words [at, at + kFew); in place of those past the end the last one.
  template <class T>
  ESKER_HD static Few<T> load(const T* words, std::uint32_t at, std::uint32_t last) {
    Few<T> few{};
    if (at == last) return few;
    for (std::uint32_t i = 0; i < kFew; ++i) few.of[i] = words[at + i < last ? at + i : last - 1];
    return few;
  }

  /// As solve_serially(), in its order: the results are the same bits.
  ESKER_HD double solve(std::uint32_t row) const {
    const std::uint32_t first = rows.starts[row], last = rows.starts[row + 1];
    const double diagonal = rows.diagonal[row];
    double sum = rows.right[row];
    for (std::uint32_t at = first; at < last; at += kFew) {
      const Few<std::uint32_t> columns = load(rows.columns, at, last);
      const Few<double> values = load(rows.values, at, last);
      std::uint64_t known[kFew];
      for (std::uint32_t i = 0; i < kFew; ++i) known[i] = rows.unknowns[columns.of[i]].load_relaxed();
      for (std::uint32_t i = 0; i < kFew; ++i) {
        if (at + i >= last) break;
        while (known[i] == kNotYet) known[i] = rows.unknowns[columns.of[i]].load_relaxed();
        sum = fma(-values.of[i], std::bit_cast<double>(known[i]), sum);
      }
    }
    return sum / diagonal;
  }
};

}  // namespace sptrsv
