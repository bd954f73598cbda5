// A sparse matrix over all PEs, put together from entries that PEs have somewhere.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <esker/containers.hpp>
#include <esker/esker.hpp>

#include "../graph/prefix_sums.hpp"

namespace sparse {

struct Entry {
  std::uint64_t row, column;
};

/// A square matrix in compressed sparse rows, which PEs have in turn, as bale's do. Of entries only the
/// places count; one that was given twice is there twice.
struct Matrix {
  esker::containers::Cyclic rows;
  esker::SymmetricArray<std::uint64_t> first;  // entries of row k of this PE are first[k] to first[k + 1] - 1
  esker::SymmetricArray<std::uint64_t> columns;  // of entries
  std::uint64_t entries = 0;                     // of this PE
};

/// Entries that a PE has: those of lane l are begin(l) to end(l) - 1, and no other lane has them.
template <class L>
concept EntryLists = std::is_trivially_copyable_v<L> && requires(const L& lists, std::uint64_t i) {
  { lists.lanes() } -> std::same_as<std::uint64_t>;
  { lists.count() } -> std::same_as<std::uint64_t>;  // of all lanes
  { lists.begin(i) } -> std::same_as<std::uint64_t>;
  { lists.end(i) } -> std::same_as<std::uint64_t>;
  { lists.entry(i, i) } -> std::same_as<Entry>;  // of a lane
};

/// Entries in any order, a lane each.
struct Staged {
  esker::SymmetricArray<Entry> entries;
  std::uint64_t size;
  std::uint64_t lanes() const { return size; }
  std::uint64_t count() const { return size; }
  ESKER_HD std::uint64_t begin(std::uint64_t lane) const { return lane; }
  ESKER_HD std::uint64_t end(std::uint64_t lane) const { return lane + 1; }
  ESKER_HD Entry entry(std::uint64_t /*lane*/, std::uint64_t e) const { return entries[e]; }
};

/// Collective. On the heap what for_each_entry(visit) shows on this PE: visit(row, column).
template <class ForEachEntry>
Staged stage(esker::Runtime& rt, const ForEachEntry& for_each_entry) {
  std::vector<Entry> mine;
  for_each_entry([&](std::uint64_t row, std::uint64_t column) { mine.push_back({row, column}); });
  const auto entries = rt.heap().allocate_largest<Entry>(std::max<std::uint64_t>(1, mine.size()));
  rt.heap().write(entries, 0, std::span<const Entry>(mine));
  return {entries, mine.size()};
}

/// The entries of this PE's rows, each at the place that its row and its column have in the transposed
/// matrix. A lane has a row.
struct Transposed {
  Matrix of;
  std::uint32_t pe;
  std::uint64_t lanes() const { return of.rows.count(pe); }
  std::uint64_t count() const { return of.entries; }
  ESKER_HD std::uint64_t begin(std::uint64_t lane) const { return of.first[lane]; }
  ESKER_HD std::uint64_t end(std::uint64_t lane) const { return of.first[lane + 1]; }
  ESKER_HD Entry entry(std::uint64_t lane, std::uint64_t e) const {
    return {of.columns[e], of.rows.global_index(pe, lane)};
  }
};

/// Counts the entries of rows.
template <EntryLists L>
struct CountEntries {
  L lists;
  esker::containers::Cyclic rows;
  esker::SymmetricArray<std::uint64_t> counts;
  ESKER_HD void operator()(esker::WorkItem item) const {
    const std::uint64_t lane = item.global_id();
    for (std::uint64_t e = lists.begin(lane); e < lists.end(lane); ++e) {
      const auto at = rows.place(lists.entry(lane, e).row);
      esker::shmem_inc(item, &counts[at.index], at.pe);
    }
  }
};

/// Runs at the row's owner, whose `next` says where the row's next entry goes: a word of the heap, so that
/// one handler serves all matrices.
struct Insert {
  static constexpr std::uint64_t kOwnershipBytes = sizeof(std::uint64_t);
  esker::SymmetricArray<std::uint64_t> heap;
  ESKER_HD void operator()(esker::HandlerContext& /*context*/, std::uint64_t& next,
                           const std::uint64_t& column) const {
    heap[next++] = column;
  }
};

template <EntryLists L>
struct SendEntries {
  L lists;
  esker::containers::Cyclic rows;
  esker::SymmetricArray<std::uint64_t> next;
  esker::Handler<std::uint64_t, std::uint64_t> insert;
  ESKER_HD void operator()(esker::WorkItem item) const {
    const std::uint64_t lane = item.global_id();
    for (std::uint64_t e = lists.begin(lane); e < lists.end(lane); ++e) {
      const Entry entry = lists.entry(lane, e);
      const auto at = rows.place(entry.row);
      esker::shmem_am(item, insert, &next[at.index], entry.column, at.pe);
    }
  }
};

/// The other way, in two kernels: entries ask for their places, and are put there.
template <EntryLists L>
struct AskPlaces {
  L lists;
  esker::containers::Cyclic rows;
  esker::SymmetricArray<std::uint64_t> next, places;
  ESKER_HD void operator()(esker::WorkItem item) const {
    const std::uint64_t lane = item.global_id();
    for (std::uint64_t e = lists.begin(lane); e < lists.end(lane); ++e) {
      const auto at = rows.place(lists.entry(lane, e).row);
      esker::shmem_fetch_inc(item, &places[e], &next[at.index], at.pe);
    }
  }
};
template <EntryLists L>
struct PutEntries {
  L lists;
  esker::containers::Cyclic rows;
  esker::SymmetricArray<std::uint64_t> heap, places;
  ESKER_HD void operator()(esker::WorkItem item) const {
    const std::uint64_t lane = item.global_id();
    for (std::uint64_t e = lists.begin(lane); e < lists.end(lane); ++e) {
      const Entry entry = lists.entry(lane, e);
      esker::shmem_put(item, &heap[places[e]], entry.column, rows.owner(entry.row));
    }
  }
};

/// Makes matrices of entries.
class Assembler {
 public:
  enum class By { kMessage, kFetchInc };

  /// Collective.
  Assembler(esker::Runtime& rt, By by)
      : rt_{rt},
        by_{by},
        heap_{reinterpret_cast<std::uint64_t*>(rt.heap().base()),
              rt.heap().limit_bytes() / sizeof(std::uint64_t)} {
    if (by == By::kMessage)
      insert_ = rt.register_handler<std::uint64_t, std::uint64_t>("sparse-insert", Insert{heap_});
  }

  /// Collective. A matrix of `n` rows, of the entries that all PEs have; those of a row are in any order.
  template <EntryLists L>
  Matrix assemble(std::uint64_t n, const L& lists) {
    Matrix matrix{{n, rt_.n_pes()}, {}, {}};
    const std::uint64_t mine = matrix.rows.count(rt_.pe());
    const auto next = rt_.heap().allocate<std::uint64_t>(matrix.rows.most());
    rt_.launch(lists.lanes(), CountEntries<L>{lists, matrix.rows, next}, "sparse-count");
    rt_.barrier_all();
    std::vector<std::uint64_t> first = graph::read_prefix_sums(rt_, next, mine);
    matrix.entries = first.back();
    matrix.first = rt_.heap().allocate<std::uint64_t>(matrix.rows.most() + 1);
    matrix.columns = rt_.heap().allocate_largest<std::uint64_t>(std::max<std::uint64_t>(1, matrix.entries));
    rt_.heap().write(matrix.first, 0, std::span<const std::uint64_t>(first));
    for (std::uint64_t& at : first) at += static_cast<std::uint64_t>(matrix.columns.data() - heap_.data());
    rt_.heap().write(next, 0, std::span<const std::uint64_t>(first).first(mine));
    rt_.barrier_all();  // every PE's rows have begun
    if (by_ == By::kMessage) {
      rt_.launch(lists.lanes(), SendEntries<L>{lists, matrix.rows, next, insert_}, "sparse-send");
      rt_.barrier_all();
    } else {
      const auto places =
          rt_.heap().allocate_largest<std::uint64_t>(std::max<std::uint64_t>(1, lists.count()));
      rt_.launch(lists.lanes(), AskPlaces<L>{lists, matrix.rows, next, places}, "sparse-ask");
      rt_.quiet();
      rt_.launch(lists.lanes(), PutEntries<L>{lists, matrix.rows, heap_, places}, "sparse-put");
      rt_.barrier_all();
      rt_.heap().free(places);
    }
    rt_.heap().free(next);
    return matrix;
  }

  /// Collective.
  void free(const Matrix& matrix) {
    rt_.heap().free(matrix.first);
    rt_.heap().free(matrix.columns);
  }

 private:
  esker::Runtime& rt_;
  By by_;
  esker::SymmetricArray<std::uint64_t> heap_;  // all of it
  esker::Handler<std::uint64_t, std::uint64_t> insert_;
};

}  // namespace sparse
