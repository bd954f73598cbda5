// How lanes run a query on a frame of the table. They read the index pages first, then the columns of the
// predicates that the index leaves open.
#pragma once

#include <cstdint>

#include <esker/lane.hpp>
#include <esker/pipeline.hpp>

#include "query.hpp"

namespace setquery {

using esker::pipeline::ColumnFrame;
using esker::pipeline::ColumnLayout;
using esker::pipeline::Page;
using esker::pipeline::PageIndex;
using esker::pipeline::PageTraffic;

/// What a query has come to, in memory of the device: sums that lanes add to, some lanes to each, since
/// additions to one word follow each other.
struct alignas(esker::kLineBytes) Totals {
  static constexpr std::uint32_t kParts = 16;
  esker::DeviceAtomic<std::uint64_t> count, sum, index_bytes, data_bytes, rows;
};
/// The same, as numbers.
struct Sums {
  std::uint64_t count = 0, sum = 0, index_bytes = 0, data_bytes = 0, rows = 0;

  ESKER_HD void add(const Sums& other) {
    count += other.count;
    sum += other.sum;
    index_bytes += other.index_bytes;
    data_bytes += other.data_bytes;
    rows += other.rows;
  }
};

/// What does not change during a query, in memory of the device.
struct Plan {
  ColumnLayout layout;
  Query query;
};

/// Puts rows that are selected into an array.
struct AppendRows {
  Row* at;
  std::uint64_t capacity;
  Totals* totals;

  template <class Stage>
  ESKER_HD void operator()(Stage&, const Row& row) const {
    const std::uint64_t i = totals->rows.fetch_add_relaxed(1);
    if (i < capacity) at[i] = row;
  }
};

/// Emits them.
struct EmitRows {
  esker::pipeline::Topic<Row> to;

  template <class Stage>
  ESKER_HD void operator()(Stage& stage, const Row& row) const {
    stage.emit(to, row);
  }
};

/// Scans frames. `Rows` gets what Q4 selects.
///
/// Progress. 32 lanes, or all where there are fewer, take one page of each column: 1024 rows. They wait for
/// no
///           other lane.
template <class Rows>
struct Scan {
  const Plan* plan;
  Totals* totals;  // kParts of them
  Rows rows;

  template <class Stage>
  ESKER_HD void operator()(Stage& stage, const Page* pages) const {
    const std::uint32_t width = stage.lanes() < 32 ? stage.lanes() : 32;
    const std::uint32_t parts = stage.lanes() / width, part = stage.lane() / width;
    if (part >= parts) return;
    const ColumnFrame frame(plan->layout, pages);
    Sums mine;
    for (std::uint32_t page = part; page < plan->layout.pages_of(0); page += parts)
      scan_page(stage, frame, page, stage.lane() % width, width, mine);
    Totals& to = totals[stage.lane() % Totals::kParts];
    add(to.count, mine.count);
    add(to.sum, mine.sum);
    add(to.index_bytes, mine.index_bytes);
    add(to.data_bytes, mine.data_bytes);
  }

 private:
  /// What one load of a lane gets.
  struct alignas(16) Four {
    std::uint32_t values[4];
  };
  static constexpr std::uint32_t kSectorBytes = 32;  // the least that crosses the bus
  enum class Verdict { kNever, kSometimes, kAlways };

  ESKER_HD static void add(esker::DeviceAtomic<std::uint64_t>& total, std::uint64_t mine) {
    if (mine != 0) total.fetch_add_relaxed(mine);
  }
  ESKER_HD static Four load(const ColumnFrame& frame, std::uint32_t column, std::uint32_t page,
                            std::uint32_t row) {
    return *reinterpret_cast<const Four*>(frame.values<std::uint32_t>(column, page) + row);
  }

  /// What the index says of the predicate.
  ESKER_HD static Verdict verdict_of(const Predicate& predicate, const PageIndex& index,
                                     PageTraffic& traffic) {
    Verdict is_in = Verdict::kNever;
    for (std::uint32_t i = 0; i < predicate.n_ranges; ++i) {
      const Range& range = predicate.ranges[i];
      if (index.is_within(range.least, range.greatest)) {
        is_in = Verdict::kAlways;
        break;
      }
      const bool may_be = range.least == range.greatest ? index.may_contain(range.least, traffic)
                                                        : index.overlaps(range.least, range.greatest);
      if (may_be) is_in = Verdict::kSometimes;
    }
    if (!predicate.is_negated || is_in == Verdict::kSometimes) return is_in;
    return is_in == Verdict::kAlways ? Verdict::kNever : Verdict::kAlways;
  }

  template <class Stage>
  ESKER_HD void scan_page(Stage& stage, const ColumnFrame& frame, std::uint32_t page, std::uint32_t lane,
                          std::uint32_t width, Sums& mine) const {
    const Query& query = plan->query;
    PageTraffic traffic;
    std::uint32_t open = 0, n_rows = 0;  // a bit a predicate that rows must be asked for
    bool is_open = true;
    for (std::uint32_t p = 0; is_open && p < query.n; ++p) {
      const PageIndex index = frame.index(query.predicates[p].column, page, traffic);
      n_rows = index.rows();
      const Verdict verdict = verdict_of(query.predicates[p], index, traffic);
      is_open = verdict != Verdict::kNever;
      if (verdict == Verdict::kSometimes) open |= 1u << p;
    }
    if (lane == 0) mine.index_bytes += traffic.index_bytes;
    if (!is_open) return;
    for (std::uint32_t row = 4 * lane; row < n_rows; row += 4 * width) {
      std::uint32_t selected = n_rows - row < 4 ? (1u << (n_rows - row)) - 1 : 15;
      bool is_first = true;
      for (std::uint32_t p = 0; selected != 0 && p < query.n; ++p) {
        if ((open >> p & 1) == 0) continue;
        const Four four = load(frame, query.predicates[p].column, page, row);
        // All lanes load the first column; of the others some do, whose neighbours may not.
        mine.data_bytes += is_first ? sizeof(Four) : kSectorBytes;
        is_first = false;
        for (std::uint32_t i = 0; i < 4; ++i) {
          if (!query.predicates[p].holds(four.values[i])) selected &= ~(1u << i);
        }
      }
      if (selected != 0) answer(stage, frame, page, row, selected, mine);
    }
  }

  template <class Stage>
  ESKER_HD void answer(Stage& stage, const ColumnFrame& frame, std::uint32_t page, std::uint32_t row,
                       std::uint32_t selected, Sums& mine) const {
    for (std::uint32_t i = 0; i < 4; ++i) mine.count += selected >> i & 1;
    if (plan->query.answer == Answer::kSum) {
      const Four values = load(frame, k1K, page, row);
      mine.data_bytes += kSectorBytes;
      for (std::uint32_t i = 0; i < 4; ++i) mine.sum += (selected >> i & 1) * values.values[i];
    } else if (plan->query.answer == Answer::kRows) {
      const Four seq = load(frame, kSeq, page, row), k500k = load(frame, k500K, page, row);
      mine.data_bytes += 2 * kSectorBytes;
      for (std::uint32_t i = 0; i < 4; ++i) {
        if ((selected >> i & 1) != 0) rows(stage, Row{seq.values[i], k500k.values[i]});
      }
    }
  }
};

}  // namespace setquery
