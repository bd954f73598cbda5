// Triangles by gets: a PE brings the rows that its own rows name, some at a time, each once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include <esker/esker.hpp>

#include "../graph/list_runs.hpp"
#include "../graph/prefix_sums.hpp"
#include "rows.hpp"

namespace triangles {

/// Entries of one row of this PE, which lead up to one whose own row is another PE's.
struct Use {
  std::uint64_t begin;
  std::uint32_t count;
  std::uint32_t needed;  // which of the needed rows
};

/// What lanes see. Of needed row i, which is another PE's: where it is, where it begins and ends there, and
/// where it stands here while it is among those that have been brought.
struct Needed {
  esker::SymmetricArray<std::uint32_t> positions;
  esker::SymmetricArray<std::uint64_t> begins, ends;
  esker::SymmetricArray<std::uint64_t> places;
  esker::SymmetricArray<Key> brought;
};

/// A lane asks where a row begins and ends.
struct AskBounds {
  Rows rows;
  Needed needed;
  ESKER_HD void operator()(esker::WorkItem item) const {
    const std::uint64_t i = item.global_id();
    const graph::Location row = rows.positions.place(needed.positions[i]);
    shmem_get(item, &needed.begins[i], &rows.first[row.index()], row.pe());
    shmem_get(item, &needed.ends[i], &rows.first[row.index() + 1], row.pe());
  }
};

/// A lane brings one of the rows from `from` on.
struct Bring {
  Rows rows;
  Needed needed;
  std::uint64_t from;
  ESKER_HD void operator()(esker::WorkItem item) const {
    const std::uint64_t i = from + item.global_id();
    const std::uint32_t pe = rows.positions.place(needed.positions[i]).pe();
    const std::uint64_t begin = needed.begins[i], length = needed.ends[i] - begin;
    for (std::uint64_t k = 0; k < length; ++k)
      shmem_get(item, &needed.brought[needed.places[i] + k], &rows.keys[begin + k], pe);
  }
};

/// A lane counts what kRun uses have in common with the rows that have been brought for them.
template <std::uint64_t kRun>
struct CountUses {
  Rows rows;
  Needed needed;
  esker::SymmetricArray<Use> uses;
  esker::SymmetricArray<std::uint64_t> counts;
  std::uint64_t from, count;
  ESKER_HD void operator()(esker::Lane lane) const {
    const graph::RunOf<kRun> run(lane.global_id(), count);
    std::uint64_t found = 0;
    for (std::uint64_t u = from + run.first; u < from + run.end; ++u) {
      const Use use = uses[u];
      const Key* const own = rows.keys.data() + use.begin;
      const Key* const other = needed.brought.data() + needed.places[use.needed];
      found +=
          common(own, own + use.count, other, other + (needed.ends[use.needed] - needed.begins[use.needed]));
    }
    if (found > 0) graph::reserve(counts[lane.global_id() % counts.size()], found);
  }
};

/// Contract. run() is local but for its last waiting, which the caller does: rows are brought while their
/// owners do whatever they do.
class Pull {
 public:
  /// Collective.
  Pull(esker::Runtime& rt, const Rows& rows) : rt_{rt}, rows_{rows} {
    std::vector<Use> uses = find_uses();  // whose `needed` is a position
    std::sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) {
      return std::tie(a.needed, a.begin, a.count) < std::tie(b.needed, b.begin, b.count);
    });
    std::vector<std::uint32_t> positions;
    for (std::size_t u = 0; u < uses.size(); ++u) {
      if (positions.empty() || positions.back() != uses[u].needed) {
        positions.push_back(uses[u].needed);
        first_use_.push_back(u);
      }
      uses[u].needed = static_cast<std::uint32_t>(positions.size() - 1);
    }
    first_use_.push_back(uses.size());
    auto& heap = rt.heap();
    uses_ = heap.allocate_largest<Use>(uses.size() + 1);
    heap.write(uses_, 0, std::span<const Use>(uses));
    needed_.positions = heap.allocate_largest<std::uint32_t>(positions.size() + 1);
    heap.write(needed_.positions, 0, std::span<const std::uint32_t>(positions));
    const std::uint64_t most = needed_.positions.size();
    needed_.begins = heap.allocate<std::uint64_t>(most);
    needed_.ends = heap.allocate<std::uint64_t>(most);
    needed_.places = heap.allocate<std::uint64_t>(most);
    needed_.brought = heap.allocate<Key>(std::max({kBrought, rows.longest, std::uint64_t{1}}));
  }

  /// Adds this PE's triangles with other PEs' rows to `counts`.
  void run(esker::SymmetricArray<std::uint64_t> counts) {
    const std::uint64_t rows = first_use_.size() - 1;
    if (rows == 0) return;
    rt_.launch(rows, AskBounds{rows_, needed_}, "triangles-ask");
    rt_.quiet();
    std::vector<std::uint64_t> begins(rows), ends(rows), places(rows);
    rt_.heap().read(needed_.begins, 0, std::span(begins));
    rt_.heap().read(needed_.ends, 0, std::span(ends));
    for (std::uint64_t from = 0, end = 0; from < rows; from = end) {
      std::uint64_t taken = 0;
      for (end = from; end < rows && taken + (ends[end] - begins[end]) <= needed_.brought.size(); ++end) {
        places[end] = taken;
        taken += ends[end] - begins[end];
      }
      rt_.heap().write(needed_.places, from,
                       std::span<const std::uint64_t>(places).subspan(from, end - from));
      rt_.launch(end - from, Bring{rows_, needed_, from}, "triangles-bring");
      rt_.quiet();
      const std::uint64_t first = first_use_[from], count = first_use_[end] - first;
      graph::launch_runs(rt_, count, "triangles-count", [&]<std::uint64_t kRun>() {
        return CountUses<kRun>{rows_, needed_, uses_, counts, first, count};
      });
      rt_.quiet();  // before others are brought in their place
    }
  }

 private:
  std::vector<Use> find_uses() const {
    std::vector<Use> uses;
    const auto first = graph::read_first(rt_, rows_.first, rows_.my_rows);
    const std::vector<Key> keys = rt_.heap().read(rows_.keys);
    for (std::uint64_t v = 0; v < rows_.my_rows; ++v) {
      for (std::uint64_t e = first[v] + 1; e < first[v + 1]; ++e) {  // nothing is before the first
        const std::uint32_t position = position_of(keys[e]);
        if (!rows_.positions.is_mine(position))
          uses.push_back({first[v], static_cast<std::uint32_t>(e - first[v]), position});
      }
    }
    return uses;
  }

  static constexpr std::uint64_t kBrought = std::uint64_t{1} << 20;  // keys at a time

  esker::Runtime& rt_;
  const Rows rows_;
  std::vector<std::uint64_t> first_use_;  // of a needed row, and the end
  esker::SymmetricArray<Use> uses_;
  Needed needed_;
};

}  // namespace triangles
