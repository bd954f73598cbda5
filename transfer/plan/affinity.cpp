// Affinity graph, Hamiltonian paths by depth-first searches, times in memory order.
#include <esker/transfer/plan/affinity.hpp>

#include <algorithm>
#include <random>
#include <vector>

#include <esker/error.hpp>
#include <esker/transfer/plan/stabbing.hpp>

namespace esker::transfer {

namespace {

bool overlap(const Transfer& a, const Transfer& b) {
  return a.from == b.from && a.to == b.to && a.earliest <= b.latest && b.earliest <= a.latest;
}

constexpr double kSiblingBonus = 0.25;  // the paper's epsilon: for operands of one kernel

/// Weights between transfers, which are as many as the operands that cross.
class AffinityGraph {
 public:
  AffinityGraph(const OperandGraph& graph, std::span<const Transfer> transfers)
      : size_{transfers.size()}, weights_(size_ * size_, 0) {
    for (std::size_t a = 0; a < size_; ++a) {
      for (std::size_t b = a + 1; b < size_; ++b) {
        if (overlap(transfers[a], transfers[b])) weights_[a * size_ + b] = weights_[b * size_ + a] = 1;
      }
    }
    std::vector<std::size_t> transfer_of(graph.operands(), size_);
    for (std::size_t i = 0; i < size_; ++i) transfer_of[transfers[i].operand] = i;
    std::vector<std::size_t> used;
    for (std::uint32_t k = 0; k < graph.kernels(); ++k) {
      used.clear();
      for (const std::uint32_t operand : graph.reads(k)) used.push_back(transfer_of[operand]);
      for (const std::uint32_t operand : graph.writes(k)) used.push_back(transfer_of[operand]);
      for (const std::size_t a : used) {
        for (const std::size_t b : used) {
          if (a == b || a == size_ || b == size_) continue;
          double& weight = weights_[a * size_ + b];
          if (weight == 1) weight += kSiblingBonus;
        }
      }
    }
  }
  std::size_t size() const { return size_; }
  double weight(std::size_t a, std::size_t b) const { return weights_[a * size_ + b]; }

 private:
  std::size_t size_;
  std::vector<double> weights_;
};

using Path = std::vector<std::uint32_t>;

/// A depth-first search from a vertex of `component` in preorder.
Path random_path(const AffinityGraph& graph, const Path& component, std::vector<std::uint8_t>& is_visited,
                 std::mt19937_64& random) {
  for (const std::uint32_t vertex : component) is_visited[vertex] = 0;
  Path path, stack;
  const auto visit = [&](std::uint32_t vertex) {
    is_visited[vertex] = 1;
    path.push_back(vertex);
    stack.push_back(vertex);
  };
  visit(component[random() % component.size()]);
  while (path.size() < component.size()) {
    double sum = 0;
    for (const std::uint32_t next : component) {
      if (is_visited[next] == 0) sum += graph.weight(stack.back(), next);
    }
    if (sum == 0) {
      stack.pop_back();
      continue;
    }
    double ticket = std::uniform_real_distribution<double>(0, sum)(random);
    std::uint32_t chosen = component.front();
    for (const std::uint32_t next : component) {
      const double weight = is_visited[next] == 0 ? graph.weight(stack.back(), next) : 0;
      if (weight == 0) continue;
      chosen = next;
      ticket -= weight;
      if (ticket < 0) break;
    }
    visit(chosen);
  }
  return path;
}

double weight_of(const AffinityGraph& graph, const Path& path) {
  double sum = 0;
  for (std::size_t i = 1; i < path.size(); ++i) sum += graph.weight(path[i - 1], path[i]);
  return sum;
}

/// The components' heaviest paths, one after the other.
Path memory_order(const AffinityGraph& graph, std::span<const Transfer> transfers,
                  const AffinityOptions& options) {
  std::mt19937_64 random(options.seed);
  std::vector<std::uint8_t> is_reached(graph.size(), 0), is_visited(graph.size(), 0);
  Path order, component;
  for (std::uint32_t first = 0; first < graph.size(); ++first) {
    if (is_reached[first] != 0) continue;
    is_reached[first] = 1;
    component.assign(1, first);
    for (std::size_t i = 0; i < component.size(); ++i) {
      for (std::uint32_t next = 0; next < graph.size(); ++next) {
        if (is_reached[next] != 0 || graph.weight(component[i], next) == 0) continue;
        is_reached[next] = 1;
        component.push_back(next);
      }
    }
    Path best;
    double best_weight = -1;
    for (std::uint32_t attempt = 0; attempt < std::max(1u, options.attempts); ++attempt) {
      Path path = random_path(graph, component, is_visited, random);
      if (const double weight = weight_of(graph, path); weight > best_weight) {
        best_weight = weight;
        best = std::move(path);
      }
    }
    // Either direction would do; the paper's listings have early transfers first.
    if (transfers[best.front()].latest > transfers[best.back()].latest)
      std::reverse(best.begin(), best.end());
    order.insert(order.end(), best.begin(), best.end());
  }
  return order;
}

/// The longest runs from the front that can share a time, each at its earliest one.
void choose_greedily(std::span<const Transfer> transfers, const Path& order,
                     std::vector<std::uint32_t>& times) {
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    Transfer shared = transfers[order[begin]];
    for (end = begin + 1; end < order.size() && overlap(shared, transfers[order[end]]); ++end) {
      shared.earliest = std::max(shared.earliest, transfers[order[end]].earliest);
      shared.latest = std::min(shared.latest, transfers[order[end]].latest);
    }
    for (std::size_t i = begin; i < end; ++i) times[order[i]] = shared.earliest;
  }
}

/// Two neighbours that one kernel uses go late together, where that is later than their run's time.
void make_siblings_late(const AffinityGraph& graph, std::span<const Transfer> transfers, const Path& order,
                        std::vector<std::uint32_t>& times) {
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    const Transfer &mine = transfers[order[i]], &next = transfers[order[i + 1]];
    if (!mine.is_upload() || graph.weight(order[i], order[i + 1]) <= 1) continue;
    times[order[i]] = times[order[i + 1]] = std::min(mine.latest, next.latest);
    ++i;
  }
}

}  // namespace

Schedule schedule_by_affinity(const OperandGraph& graph, std::span<const Transfer> transfers,
                              const AffinityOptions& options) {
  if (!crosses_once(graph, transfers)) {
    throw Error(
        Error::Kind::kTransfer,
        "schedule_by_affinity: an operand crosses more than once, or has an address: solver exact takes "
        "such graphs");
  }
  const AffinityGraph affinity(graph, transfers);
  const Path order = memory_order(affinity, transfers, options);
  std::vector<std::uint32_t> times(transfers.size(), 0);
  choose_greedily(transfers, order, times);
  if (options.tight) make_siblings_late(affinity, transfers, order, times);

  Schedule schedule;
  schedule.transfers = static_cast<std::uint32_t>(transfers.size());
  schedule.certificate = disjoint_transfers(transfers);
  schedule.lower_bound = static_cast<std::uint32_t>(schedule.certificate.size());
  std::vector<std::uint8_t> is_placed(graph.operands(), 0);
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    const Transfer& transfer = transfers[order[i]];
    const std::uint32_t storage = graph.storage(transfer.operand);
    is_placed[storage] = 1;
    schedule.order.push_back(storage);
    if (i != 0) {
      Startup& last = schedule.startups.back();
      if (last.from == transfer.from && last.to == transfer.to && last.time == times[order[i]]) {
        ++last.count;
        continue;
      }
    }
    schedule.startups.push_back({transfer.from, transfer.to, times[order[i]], i, 1});
  }
  for (std::uint32_t i = 0; i < graph.operands(); ++i) {
    if (is_placed[i] == 0 && graph.storage(i) == i) schedule.order.push_back(i);
  }
  sort_startups(schedule.startups);
  return schedule;
}

}  // namespace esker::transfer
