// Rows of storages by heavy edges, then by moves of stretches while these save runs.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <utility>

#include <esker/transfer/plan/memory_order.hpp>

namespace esker::transfer::detail {

namespace {

/// Windows of two items that can share a startup; those with few times count for more.
double weight(const Item& a, const Item& b) {
  double sum = 0;
  for (const Window& one : a.windows) {
    for (const Window& other : b.windows) {
      if (!overlap(one, other)) continue;
      const std::uint32_t times =
          std::min(one.latest, other.latest) - std::max(one.earliest, other.earliest) + 1;
      const std::uint32_t longest = std::max(one.latest - one.earliest, other.latest - other.earliest) + 1;
      sum += 1 + 0.5 * static_cast<double>(times) / static_cast<double>(longest);
    }
  }
  return sum;
}

/// Paths grown from heavy edges, put one after the other.
std::vector<const Item*> by_heavy_edges(const std::vector<Item>& items) {
  struct Edge {
    double weight;
    std::size_t a, b;
  };
  std::vector<Edge> edges;
  for (std::size_t a = 0; a < items.size(); ++a) {
    for (std::size_t b = a + 1; b < items.size(); ++b) {
      if (const double heavy = weight(items[a], items[b]); heavy > 0) edges.push_back({heavy, a, b});
    }
  }
  std::stable_sort(edges.begin(), edges.end(),
                   [](const Edge& x, const Edge& y) { return x.weight > y.weight; });
  std::vector<std::vector<std::size_t>> next(items.size());
  std::vector<std::size_t> path(items.size());  // the number of the path that each is in
  std::iota(path.begin(), path.end(), std::size_t{0});
  for (const Edge& edge : edges) {
    if (next[edge.a].size() == 2 || next[edge.b].size() == 2 || path[edge.a] == path[edge.b]) continue;
    next[edge.a].push_back(edge.b);
    next[edge.b].push_back(edge.a);
    std::replace(path.begin(), path.end(), std::size_t{path[edge.b]}, std::size_t{path[edge.a]});
  }
  std::vector<const Item*> row;
  std::vector<bool> is_placed(items.size(), false);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (is_placed[i] || next[i].size() == 2) continue;
    for (std::size_t at = i; !is_placed[at];) {
      is_placed[at] = true;
      row.push_back(&items[at]);
      for (const std::size_t other : next[at]) {
        if (!is_placed[other]) {
          at = other;
          break;
        }
      }
    }
  }
  return row;
}

}  // namespace

std::vector<Run> runs_of(const std::vector<const Item*>& row) {
  std::vector<Run> runs;
  std::vector<std::size_t> open, opened;
  for (std::uint32_t at = 0; at < row.size(); ++at) {
    opened.clear();
    for (const Window& window : row[at]->windows) {
      std::size_t best = runs.size();
      std::uint32_t most = 0;  // times that are left
      for (const std::size_t i : open) {
        const Run& run = runs[i];
        if (run.first + run.count != at || !overlap(run, window)) continue;
        const std::uint32_t times =
            std::min(run.latest, window.latest) - std::max(run.earliest, window.earliest) + 1;
        if (times > most) std::tie(most, best) = std::tuple(times, i);
      }
      if (best == runs.size()) {
        runs.push_back({window.lane, window.earliest, window.latest, at, 1});
      } else {
        runs[best].earliest = std::max(runs[best].earliest, window.earliest);
        runs[best].latest = std::min(runs[best].latest, window.latest);
        ++runs[best].count;
      }
      opened.push_back(best);
    }
    open.swap(opened);
  }
  return runs;
}

Row heuristic_row(const std::vector<Item>& items) {
  std::vector<const Item*> row = by_heavy_edges(items);
  std::size_t cost = runs_of(row).size();
  const std::uint32_t least = least_runs(items);
  // A stretch of up to 3 goes elsewhere, either way round.
  std::vector<const Item*> moved;
  bool has_improved = true;
  for (int round = 0; round < 20 && has_improved && cost > least; ++round) {
    has_improved = false;
    for (std::size_t length = 1; length <= std::min<std::size_t>(3, row.size() - 1); ++length) {
      for (std::size_t from = 0; from + length <= row.size(); ++from) {
        for (std::size_t to = 0; to + length <= row.size(); ++to) {
          for (const bool is_turned : {false, true}) {
            if (to == from && !is_turned) continue;
            moved = row;
            moved.erase(moved.begin() + static_cast<std::ptrdiff_t>(from),
                        moved.begin() + static_cast<std::ptrdiff_t>(from + length));
            std::vector<const Item*> stretch(row.begin() + static_cast<std::ptrdiff_t>(from),
                                             row.begin() + static_cast<std::ptrdiff_t>(from + length));
            if (is_turned) std::reverse(stretch.begin(), stretch.end());
            moved.insert(moved.begin() + static_cast<std::ptrdiff_t>(to), stretch.begin(), stretch.end());
            const std::size_t new_cost = runs_of(moved).size();
            if (new_cost >= cost) continue;
            cost = new_cost;
            row.swap(moved);
            has_improved = true;
          }
        }
      }
    }
  }
  std::vector<Run> runs = runs_of(row);
  return {std::move(row), std::move(runs)};
}

std::vector<std::uint32_t> least_runs_of_lanes(std::vector<Window> windows) {
  std::sort(windows.begin(), windows.end(),
            [](const Window& a, const Window& b) { return a.latest < b.latest; });
  std::vector<std::uint32_t> runs;
  std::vector<std::int64_t> last;
  for (const Window& window : windows) {
    if (window.lane >= runs.size()) {
      runs.resize(window.lane + 1, 0);
      last.resize(window.lane + 1, -1);
    }
    if (window.earliest <= last[window.lane]) continue;
    last[window.lane] = window.latest;
    ++runs[window.lane];
  }
  return runs;
}

std::uint32_t least_runs(const std::vector<Item>& items) {
  std::vector<Window> windows;
  for (const Item& item : items) windows.insert(windows.end(), item.windows.begin(), item.windows.end());
  const std::vector<std::uint32_t> runs = least_runs_of_lanes(std::move(windows));
  return std::accumulate(runs.begin(), runs.end(), 0u);
}

}  // namespace esker::transfer::detail
