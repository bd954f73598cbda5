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
  esker::DeviceAtomic<std::uint64_t>* unknowns;  // their bits: of this run ...
  esker::DeviceAtomic<std::uint64_t>* others;    // ... and of the one before, which the next one will use
};

/// One lane's: a row before the first run. Runs leave it so.
struct PrepareRow {
  Rows rows;
  ESKER_HD void operator()(esker::Lane lane) const {
    const auto row = static_cast<std::uint32_t>(lane.global_id());
    rows.missing[row].store_relaxed(rows.starts[row + 1] - rows.starts[row]);
    rows.unknowns[row].store_relaxed(kNotYet);
    rows.others[row].store_relaxed(kNotYet);
  }
};

/// A row that needs nothing more: computes its unknown, and spawns the rows that have waited for it last.
/// Then it is made ready for the next run.
struct SolveRow {
  Rows rows;
  esker::tasks::GraphChannel<std::uint32_t> ready;

  ESKER_HD void operator()(auto& task, const std::uint32_t& row) const {
    const Range entries{rows.starts[row], rows.starts[row + 1]};
    const Range below{rows.below_starts[row], rows.below_starts[row + 1]};
    const double right = rows.right[row], diagonal = rows.diagonal[row];
    // Early, beside what the solution waits for: each of these takes as long as memory takes.
    Few<std::uint32_t> needing = load(rows.below, below.first, below);
    const double x = subtract(right, entries) / diagonal;
    rows.unknowns[row].store_relaxed(std::bit_cast<std::uint64_t>(x));
    for (std::uint32_t at = below.first; at < below.last; at += kFew) {
      if (at != below.first) needing = load(rows.below, at, below);
      std::uint32_t missed[kFew] = {}, ready_ones = 0;
      for (std::uint32_t i = 0; i < kFew; ++i) {
        if (at + i < below.last) missed[i] = rows.missing[needing.of[i]].fetch_add_relaxed(~0u);
      }
      for (std::uint32_t i = 0; i < kFew; ++i) ready_ones |= missed[i] == 1 ? 1u << i : 0;
      for (std::uint32_t i = at; ready_ones != 0; ++i, ready_ones >>= 1) {
        if ((ready_ones & 1) != 0) task.spawn(ready, rows.below[i]);
      }
    }
    rows.missing[row].store_relaxed(entries.last - entries.first);
    rows.others[row].store_relaxed(kNotYet);
  }

 private:
  struct Range {
    std::uint32_t first, last;
  };
  /// Of a row's entries, those that are on their way from memory at a time.
  static constexpr std::uint32_t kFew = 4;
  template <class T>
  struct Few {
    T of[kFew];
  };
  /// Words [at, at + kFew) of a range; in place of those past its end the last one, or any word of the array.
  /// There is no branch, which would wait for the range before what follows is on its way.
  template <class T>
  ESKER_HD static Few<T> load(const T* words, std::uint32_t at, const Range& range) {
    const std::uint32_t end = range.last != 0 ? range.last - 1 : 0;
    Few<T> few;
    for (std::uint32_t i = 0; i < kFew; ++i) few.of[i] = words[at + i < end ? at + i : end];
    return few;
  }

  /// As solve_serially(), in its order: the results are the same bits.
  ESKER_HD double subtract(double sum, const Range& entries) const {
    Few<std::uint32_t> columns = load(rows.columns, entries.first, entries);
    Few<double> values = load(rows.values, entries.first, entries);
    for (std::uint32_t at = entries.first; at < entries.last; at += kFew) {
      if (at != entries.first) {
        columns = load(rows.columns, at, entries);
        values = load(rows.values, at, entries);
      }
      std::uint64_t known[kFew];
      for (std::uint32_t i = 0; i < kFew; ++i) known[i] = rows.unknowns[columns.of[i]].load_relaxed();
      for (std::uint32_t i = 0; i < kFew; ++i) {
        if (at + i >= entries.last) break;
        while (known[i] == kNotYet) known[i] = rows.unknowns[columns.of[i]].load_relaxed();
        sum = fma(-values.of[i], std::bit_cast<double>(known[i]), sum);
      }
    }
    return sum;
  }
};

}  // namespace sptrsv
