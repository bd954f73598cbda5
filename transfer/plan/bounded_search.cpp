// The fewest startups in bounded device memory, over all that may be on the device before each kernel.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include <esker/error.hpp>
#include <esker/transfer/plan/bounded.hpp>

namespace esker::transfer {

namespace {

constexpr std::uint32_t kMostOperands = 20;
using Set = std::uint32_t;  // of operands

/// Which values are on the device, and which the host has.
struct State {
  Set on_device, on_host;
  std::uint64_t key() const { return std::uint64_t{on_device} << 32 | on_host; }
};

class Search {
 public:
  Search(const OperandGraph& graph, std::uint64_t limit, std::uint64_t alignment)
      : graph_{graph}, limit_{limit} {
    for (std::uint32_t i = 0; i < graph.operands(); ++i)
      bytes_.push_back(space_of(graph.operand(i), alignment));
  }

  std::uint32_t fewest() {
    Set on_entry = 0, on_exit = 0;
    for (std::uint32_t i = 0; i < graph_.operands(); ++i) {
      on_entry |= graph_.operand(i).on_entry ? Set{1} << i : 0;
      on_exit |= graph_.operand(i).on_exit ? Set{1} << i : 0;
    }
    Costs now = {{State{0, on_entry}.key(), 0}};
    for (std::uint32_t k = 0; k < graph_.kernels(); ++k) {
      Costs next;
      for (const auto& [key, cost] : now)
        step(k, {static_cast<Set>(key >> 32), static_cast<Set>(key)}, cost, next);
      now = std::move(next);
    }
    std::uint32_t least = kNoSchedule;
    for (const auto& [key, cost] : now) {
      if ((on_exit & ~static_cast<Set>(key)) == 0) least = std::min(least, cost);
    }
    return least;
  }

 private:
  using Costs = std::unordered_map<std::uint64_t, std::uint32_t>;

  static Set set_of(std::span<const std::uint32_t> operands) {
    Set set = 0;
    for (const std::uint32_t operand : operands) set |= Set{1} << operand;
    return set;
  }
  std::uint64_t bytes_of(Set set) const {
    std::uint64_t sum = 0;
    for (; set != 0; set &= set - 1) sum += bytes_[static_cast<std::size_t>(std::countr_zero(set))];
    return sum;
  }
  static void keep_least(Costs& costs, const State& state, std::uint32_t cost) {
    const auto [found, is_new] = costs.try_emplace(state.key(), cost);
    if (!is_new) found->second = std::min(found->second, cost);
  }

  /// Kernel k, and after it one download of all that the host lacks, or none.
  void after(std::uint32_t k, State state, std::uint32_t cost, Costs& next) const {
    const Set written = set_of(graph_.writes(k));
    if (graph_.place(k) == 0) {
      if ((set_of(graph_.reads(k)) & ~state.on_host) != 0) return;
      state.on_host |= written;
    } else {
      state.on_device |= written;
    }
    keep_least(next, state, cost);
    if ((state.on_device & ~state.on_host) != 0)
      keep_least(next, {state.on_device, state.on_host | state.on_device}, cost + 1);
  }

  void step(std::uint32_t k, const State& state, std::uint32_t cost, Costs& next) const {
    if (graph_.place(k) == 0) return after(k, state, cost, next);
    // An upload later than a kernel of the host does what one before it does, so uploads are here alone.
    const Set reads = set_of(graph_.reads(k)), writes = set_of(graph_.writes(k));
    const Set possible = state.on_device | state.on_host;
    if ((reads & ~possible) != 0) return;
    const Set choice = possible & ~reads;
    for (Set some = choice;; some = (some - 1) & choice) {
      const Set resident = some | reads;
      const std::uint64_t bytes = bytes_of(resident | writes);
      if (bytes <= limit_ && is_largest(choice & ~some, bytes, resident, state))
        after(k, {resident, state.on_host}, cost + ((resident & ~state.on_device) != 0 ? 1 : 0), next);
      if (some == 0) return;
    }
  }
  /// Nothing more could stay, or come in the same upload: what has less is never better.
  bool is_largest(Set left_out, std::uint64_t bytes, Set resident, const State& state) const {
    const bool uploads = (resident & ~state.on_device) != 0;
    for (Set rest = uploads ? left_out : left_out & state.on_device; rest != 0; rest &= rest - 1) {
      if (bytes + bytes_[static_cast<std::size_t>(std::countr_zero(rest))] <= limit_) return false;
    }
    return true;
  }

  const OperandGraph& graph_;
  const std::uint64_t limit_;
  std::vector<std::uint64_t> bytes_;
};

}  // namespace

std::uint32_t fewest_startups_bounded(const OperandGraph& graph, std::uint64_t device_bytes,
                                      std::uint64_t alignment) {
  if (graph.places() > 2 || graph.has_versions() || graph.operands() > kMostOperands) {
    throw Error(Error::Kind::kTransfer,
                fmt::format("fewest_startups_bounded: a graph of {} operands and {} devices{}: it searches "
                            "those of up to {} on one device, in single assignment",
                            graph.operands(), graph.places() - 1,
                            graph.has_versions() ? " that changes operands in place" : "", kMostOperands));
  }
  return Search(graph, device_bytes, alignment).fewest();
}

}  // namespace esker::transfer
