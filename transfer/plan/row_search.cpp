// Rows of storages by branch and bound: each in turn at the end of the row, each window into a run or a new
// one.
#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

#include <esker/transfer/plan/memory_order.hpp>

namespace esker::transfer::detail {

namespace {

class Search {
 public:
  Search(const std::vector<Item>& items, const Row& best_known)
      : items_{items}, best_{best_known}, best_cost_{static_cast<std::uint32_t>(best_known.runs.size())} {
    for (const Item& item : items_) {
      for (const Window& window : item.windows) lanes_ = std::max(lanes_, window.lane + 1);
    }
  }
  Row result() {
    append(0);
    return std::move(best_);
  }

 private:
  std::uint32_t all() const { return (1u << items_.size()) - 1; }

  /// Runs that the items which are not in `placed` need at least, lane by lane.
  const std::vector<std::uint32_t>& least_of_rest(std::uint32_t placed) {
    const auto [found, is_new] = least_.try_emplace(placed);
    if (!is_new) return found->second;
    std::vector<Window> windows;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if ((placed >> i & 1) == 0)
        windows.insert(windows.end(), items_[i].windows.begin(), items_[i].windows.end());
    }
    return found->second = least_runs_of_lanes(std::move(windows));
  }

  std::uint32_t bound(std::uint32_t placed) {
    std::vector<std::uint32_t> open(lanes_, 0);
    for (const std::uint32_t run : open_) ++open[runs_[run].lane];
    const std::vector<std::uint32_t>& least = least_of_rest(placed);
    std::uint32_t sum = static_cast<std::uint32_t>(runs_.size());
    for (std::uint32_t lane = 0; lane < least.size(); ++lane)
      sum += least[lane] > open[lane] ? least[lane] - open[lane] : 0;
    return sum;
  }

  /// Whether this state was met before at no higher cost.
  bool is_known(std::uint32_t placed) {
    std::vector<Run> open;
    for (const std::uint32_t run : open_) open.push_back(runs_[run]);
    std::sort(open.begin(), open.end(), [](const Run& a, const Run& b) {
      return std::pair(a.lane, a.earliest) < std::pair(b.lane, b.earliest);
    });
    std::string key(reinterpret_cast<const char*>(&placed), sizeof placed);
    for (const Run& run : open) {
      const std::uint32_t words[] = {run.lane, run.earliest, run.latest};
      key.append(reinterpret_cast<const char*>(words), sizeof words);
    }
    const auto cost = static_cast<std::uint32_t>(runs_.size());
    const auto [found, is_new] = costs_.try_emplace(std::move(key), cost);
    if (is_new) return false;
    if (found->second <= cost) return true;
    found->second = cost;
    return false;
  }

  void append(std::uint32_t placed) {
    if (placed == all()) {
      best_cost_ = static_cast<std::uint32_t>(runs_.size());
      best_ = {row_, runs_};
      return;
    }
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if ((placed >> i & 1) != 0) continue;
      row_.push_back(&items_[i]);
      const std::vector<std::uint32_t> before = std::exchange(open_, {});
      join(items_[i], 0, placed | 1u << i, before, std::vector<bool>(before.size(), false));
      open_ = before;
      row_.pop_back();
    }
  }

  /// Puts the windows of the last item, from `next` on, into runs that end before it.
  void join(const Item& item, std::size_t next, std::uint32_t placed,
            const std::vector<std::uint32_t>& before, const std::vector<bool>& is_joined) {
    if (next == item.windows.size()) {
      if (bound(placed) < best_cost_ && (placed == all() || !is_known(placed))) append(placed);
      return;
    }
    const Window& window = item.windows[next];
    std::size_t rivals = 0;  // for these windows and these runs: more than one each leaves a choice
    for (const Window& other : item.windows) rivals += other.lane == window.lane ? 1 : 0;
    std::size_t ends = 0, fitting = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const Run& run = runs_[before[i]];
      if (run.lane != window.lane) continue;
      ++ends;
      if (is_joined[i] || !overlap(run, window)) continue;
      ++fitting;
      const Run saved = run;
      std::vector<bool> joined = is_joined;
      joined[i] = true;
      runs_[before[i]].earliest = std::max(saved.earliest, window.earliest);
      runs_[before[i]].latest = std::min(saved.latest, window.latest);
      ++runs_[before[i]].count;
      open_.push_back(before[i]);
      join(item, next + 1, placed, before, joined);
      open_.pop_back();
      runs_[before[i]] = saved;
    }
    // To join the only run that there is for the only window costs less now, and at most that later.
    if (fitting != 0 && rivals == 1 && ends == 1) return;
    runs_.push_back(
        {window.lane, window.earliest, window.latest, static_cast<std::uint32_t>(row_.size() - 1), 1});
    open_.push_back(static_cast<std::uint32_t>(runs_.size() - 1));
    join(item, next + 1, placed, before, is_joined);
    open_.pop_back();
    runs_.pop_back();
  }

  const std::vector<Item>& items_;
  std::uint32_t lanes_ = 0;
  Row best_;
  std::uint32_t best_cost_;
  std::vector<const Item*> row_;
  std::vector<Run> runs_;
  std::vector<std::uint32_t> open_;  // runs that the last item is in
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> least_;
  std::unordered_map<std::string, std::uint32_t> costs_;
};

}  // namespace

Row search_row(const std::vector<Item>& items, const Row& best_known) {
  return Search(items, best_known).result();
}

}  // namespace esker::transfer::detail
