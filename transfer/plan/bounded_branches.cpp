// A schedule that takes too much memory at some kernel keeps an operand on the device there that the kernel
// does not use. Each of them in turn is kept away: one of these branches has the best schedule that fits.
#include <esker/transfer/plan/bounded_branches.hpp>

#include <algorithm>
#include <compare>
#include <queue>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <esker/transfer/plan/shared.hpp>
#include <esker/transfer/plan/stabbing.hpp>

namespace esker::transfer::detail {

namespace {

constexpr std::uint32_t kMostLayouts = 500, kMostOfANode = 50;  // that are tried, in all and of one node

/// An operand is not on the device while this kernel runs.
struct Absence {
  std::uint32_t operand, kernel;
  auto operator<=>(const Absence&) const = default;
};
using Absences = std::set<Absence>;

class Program {
 public:
  Program(const OperandGraph& graph, std::uint64_t device_bytes, std::uint64_t alignment)
      : graph_{graph}, device_bytes_{device_bytes}, alignment_{alignment}, uses_(graph.operands()) {
    for (std::uint32_t k = 0; k < graph.kernels(); ++k) {
      if (graph.place(k) == 0) continue;
      for (const std::uint32_t operand : graph.reads(k)) uses_[operand].push_back(k);
      for (const std::uint32_t operand : graph.writes(k)) uses_[operand].push_back(k);
    }
  }

  /// With all times that absences leave, were memory not bounded.
  std::vector<Transfer> transfers(const Absences& absences) const {
    std::vector<Transfer> all;
    for (std::uint32_t operand = 0; operand < graph_.operands(); ++operand) {
      if (uses_[operand].empty()) continue;
      std::vector<std::uint32_t> away;
      for (const Absence& absence : absences) {
        if (absence.operand == operand) away.push_back(absence.kernel);
      }
      add_transfers(operand, away, all);
    }
    return all;
  }

  /// Operands to keep away at a kernel where this schedule takes too much, or else most: at that with the
  /// fewest of them.
  std::vector<Absence> branches(const Schedule& schedule, bool fits) const {
    if (graph_.places() < 2) return {};
    const std::vector<Lifetime> lifetimes = lifetimes_of(graph_, schedule)[1];
    const std::uint64_t limit = fits ? most_alive(graph_, lifetimes, alignment_) - 1 : device_bytes_;
    std::vector<Absence> fewest;
    for (std::uint32_t k = 0; k < graph_.kernels(); ++k) {
      std::uint64_t bytes = 0;
      std::vector<Absence> unused;
      for (std::uint32_t operand = 0; operand < graph_.operands(); ++operand) {
        if (!is_alive(lifetimes[operand], k)) continue;
        bytes += space_of(graph_.operand(operand), alignment_);
        if (!std::binary_search(uses_[operand].begin(), uses_[operand].end(), k))
          unused.push_back({operand, k});
      }
      if (bytes > limit && !unused.empty() && (fewest.empty() || unused.size() < fewest.size()))
        fewest = std::move(unused);
    }
    return fewest;
  }
  bool fits(const Schedule& schedule) const {
    const std::vector<std::vector<Lifetime>> lifetimes = lifetimes_of(graph_, schedule);
    return lifetimes.size() < 2 || most_alive(graph_, lifetimes[1], alignment_) <= device_bytes_;
  }

 private:
  static bool is_alive(const Lifetime& lifetime, std::uint32_t kernel) {
    const std::uint32_t step = 3 * kernel + 1;
    return std::any_of(lifetime.stretches.begin(), lifetime.stretches.end(),
                       [&](const Lifetime::Stretch& s) { return s.first <= step && step <= s.last; });
  }

  /// `away`: kernels, in order. Between two uses it leaves if it is away there.
  void add_transfers(std::uint32_t operand, const std::vector<std::uint32_t>& away,
                     std::vector<Transfer>& all) const {
    const std::vector<std::uint32_t>& uses = uses_[operand];
    const std::uint32_t writer = graph_.writer(operand);
    const bool is_born_here = writer == uses.front();
    std::uint32_t from = graph_.operand(operand).on_entry ? 0 : writer + 1;
    std::uint32_t leaves = graph_.kernels();  // the first kernel at which it is away after it was here
    bool comes_back = false;
    for (std::size_t i = 0; i < uses.size(); ++i) {
      bool comes = i == 0;
      for (const std::uint32_t k : away) {
        if (k >= uses[i] || k < from) continue;
        if (i > 0) leaves = std::min(leaves, k);
        comes = true;
        from = k + 1;
      }
      comes_back = comes_back || (comes && i > 0);
      if (comes && !(i == 0 && is_born_here)) all.push_back({operand, 0, 1, from, uses[i]});
      from = uses[i] + 1;
    }
    if (!is_born_here) return;
    const auto after = std::lower_bound(away.begin(), away.end(), from);
    if (after != away.end()) leaves = std::min(leaves, *after);
    const std::uint32_t needed = needed_on_host_after(operand);
    if (needed < graph_.kernels() || comes_back)
      all.push_back({operand, 1, 0, writer, std::min(needed, leaves - 1)});
  }
  /// The last kernel after which it may come down; kernels() if the host does not need it.
  std::uint32_t needed_on_host_after(std::uint32_t operand) const {
    for (std::uint32_t k = 0; k < graph_.kernels(); ++k) {
      if (graph_.place(k) != 0) continue;
      const auto reads = graph_.reads(k);
      if (std::find(reads.begin(), reads.end(), operand) != reads.end()) return k - 1;
    }
    return graph_.operand(operand).on_exit ? graph_.kernels() - 1 : graph_.kernels();
  }

  const OperandGraph& graph_;
  const std::uint64_t device_bytes_, alignment_;
  std::vector<std::vector<std::uint32_t>> uses_;  // on the device, in order
};

/// The schedule's layout in so much memory, maybe with the operands of a startup in another order. Nothing:
/// none was found.
std::optional<Layout> find_layout(const OperandGraph& graph, Schedule& schedule, std::uint64_t device_bytes,
                                  std::uint64_t alignment, std::uint32_t* layouts_left) {
  // A startup that shares no operand with others is in any order.
  std::vector<std::uint32_t> startups_of(schedule.order.size(), 0);
  for (const Startup& startup : schedule.startups) {
    for (std::uint32_t i = startup.first; i < startup.first + startup.count; ++i) ++startups_of[i];
  }
  std::vector<std::span<std::uint32_t>> free;
  for (const Startup& startup : schedule.startups) {
    const auto its = std::span(schedule.order).subspan(startup.first, startup.count);
    const auto shares = std::span(startups_of).subspan(startup.first, startup.count);
    const bool is_at_address = graph.operand(its.front()).host_address != 0;
    if (is_at_address || std::any_of(shares.begin(), shares.end(), [](std::uint32_t n) { return n > 1; }))
      continue;
    std::sort(its.begin(), its.end());
    free.push_back(its);
  }
  for (std::uint32_t i = 0; i<kMostOfANode&& * layouts_left> 0; ++i) {
    --*layouts_left;
    Layout layout = lay_out(graph, schedule, alignment, device_bytes);
    if (layout.bytes.size() < 2 || layout.bytes[1] <= device_bytes) return layout;
    const auto step = [](const auto& its) { return std::next_permutation(its.begin(), its.end()); };
    if (std::none_of(free.begin(), free.end(), step)) break;
  }
  return std::nullopt;
}

/// Each transfer by itself, at its time of the fewest, whatever the order in memory.
Schedule without_order(const OperandGraph& graph, const std::vector<Transfer>& transfers) {
  Schedule schedule;
  for (std::uint32_t i = 0; i < graph.operands(); ++i) schedule.order.push_back(i);
  const std::vector<std::uint32_t> times = stabbing_times(transfers);
  for (std::size_t i = 0; i < transfers.size(); ++i)
    schedule.startups.push_back({transfers[i].from, transfers[i].to, times[i], transfers[i].operand, 1});
  sort_startups(schedule.startups);
  return schedule;
}

struct Node {
  Absences absences;
  std::vector<Transfer> transfers;
  /// Whatever the order in memory, and were that not bounded. Its branches need as many: further absences
  /// leave transfers less time, and add some.
  std::uint32_t startups;

  /// Fewest startups first, and of those what is nearest to its end.
  bool operator<(const Node& other) const {
    return startups != other.startups ? startups > other.startups : absences.size() < other.absences.size();
  }
};

}  // namespace

BoundedSearch search_bounded(const OperandGraph& graph, std::uint64_t device_bytes, std::uint64_t alignment,
                             std::uint32_t limit, std::uint32_t most_nodes) {
  const Program program(graph, device_bytes, alignment);
  std::priority_queue<Node> open;
  std::set<Absences> seen;
  const auto add = [&](Absences absences) {
    if (!seen.insert(absences).second) return;
    std::vector<Transfer> transfers = program.transfers(absences);
    const auto startups = static_cast<std::uint32_t>(disjoint_transfers(transfers).size());
    open.push({std::move(absences), std::move(transfers), startups});
  };
  add({});
  BoundedSearch found;
  bool is_bound_reached = false;
  std::uint32_t layouts_left = kMostLayouts;
  while (!open.empty()) {
    const Node node = open.top();
    open.pop();
    if (!is_bound_reached) found.bound = std::min(node.startups, limit);
    if (node.startups >= limit || seen.size() >= most_nodes || layouts_left == 0) break;
    const Schedule apart = without_order(graph, node.transfers);
    const bool fits = program.fits(apart);
    is_bound_reached = is_bound_reached || fits;
    if (fits) {
      Schedule schedule = crosses_once(graph, node.transfers) ? schedule_exact(graph, node.transfers)
                                                              : schedule_shared(graph, node.transfers);
      if (schedule.startups.size() < limit) {
        if (auto layout = find_layout(graph, schedule, device_bytes, alignment, &layouts_left)) {
          limit = static_cast<std::uint32_t>(schedule.startups.size());
          found.best = BoundedSchedule{node.transfers, std::move(schedule), std::move(*layout)};
          if (limit == node.startups) break;
        }
      }
    }
    for (const Absence& absence : program.branches(apart, fits)) {
      Absences absences = node.absences;
      absences.insert(absence);
      add(std::move(absences));
    }
  }
  return found;
}

}  // namespace esker::transfer::detail
