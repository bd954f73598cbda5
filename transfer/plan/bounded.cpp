// Who leaves the device when, and what times that leaves to transfers.
#include <esker/transfer/plan/bounded.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <esker/error.hpp>
#include <esker/transfer/plan/bounded_branches.hpp>
#include <esker/transfer/plan/shared.hpp>
#include <esker/transfer/plan/stabbing.hpp>

namespace esker::transfer {

namespace {

constexpr std::uint32_t kMostNodes = 2000;  // of the search for a better one

constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();

/// Kernels between which an operand stays on the device: from its first use there to its last.
struct Stay {
  std::uint32_t operand, first, last;
  std::uint32_t number;  // among those of the operand
};

class Residency {
 public:
  Residency(const OperandGraph& graph, std::uint64_t limit, std::uint64_t alignment)
      : graph_{graph},
        limit_{limit},
        alignment_{alignment},
        uses_(graph.operands()),
        used_(graph.kernels(), 0) {
    for (std::uint32_t k = 0; k < graph.kernels(); ++k) {
      if (graph.place(k) == 0) continue;
      for (const std::uint32_t operand : graph.reads(k)) uses_[operand].push_back(k);
      for (const std::uint32_t operand : graph.writes(k)) uses_[operand].push_back(k);
    }
    find_stays();
    for (const Stay& stay : stays_) reserve(stay.operand, stay.first, stay.last);
  }

  /// Each with the times at which there is room for it.
  std::vector<Transfer> transfers(bool as_many_times_as_fit) {
    std::vector<std::uint32_t> stays_of(graph_.operands(), 0), host_needs(graph_.operands(), kNever);
    for (const Stay& stay : stays_) ++stays_of[stay.operand];
    for (std::uint32_t k = graph_.kernels(); k-- > 0;) {
      if (graph_.place(k) != 0) continue;
      for (const std::uint32_t operand : graph_.reads(k)) host_needs[operand] = k - 1;
    }
    std::vector<Transfer> all;
    std::vector<std::uint32_t> on_host_from(graph_.operands(), 0);  // the kernel before which the host has it
    std::stable_sort(stays_.begin(), stays_.end(),
                     [](const Stay& a, const Stay& b) { return a.first < b.first; });
    std::vector<std::uint32_t> end_of_last(graph_.operands(), 0);
    for (const Stay& stay : stays_) {
      const std::uint32_t operand = stay.operand, writer = graph_.writer(operand);
      const bool is_born_here = stay.number == 0 && writer == stay.first && writer < graph_.kernels();
      const std::uint64_t bytes = bytes_of(operand);
      if (!is_born_here) {
        std::uint32_t from = graph_.operand(operand).on_entry ? 0 : writer + 1;
        if (stay.number > 0) from = std::max({from, end_of_last[operand], on_host_from[operand]});
        Transfer up{operand, 0, 1, stay.first, stay.first};
        while (as_many_times_as_fit && up.earliest > from && used_[up.earliest - 1] + bytes <= limit_)
          used_[--up.earliest] += bytes;
        all.push_back(up);
      }
      end_of_last[operand] = stay.last + 1;
      if (!is_born_here) continue;
      std::uint32_t latest = host_needs[operand];
      if (latest == kNever && graph_.operand(operand).on_exit) latest = graph_.kernels() - 1;
      if (latest == kNever && stays_of[operand] == 1) continue;  // nobody else needs it
      if (stays_of[operand] > 1) latest = std::min(latest, second_stay(operand) - 1);
      Transfer down{operand, 1, 0, writer, std::min(latest, stay.last)};
      while (as_many_times_as_fit && down.latest < latest && used_[down.latest + 1] + bytes <= limit_)
        used_[++down.latest] += bytes;
      on_host_from[operand] = down.latest + 1;
      end_of_last[operand] = std::max(end_of_last[operand], down.latest + 1);
      all.push_back(down);
    }
    return all;
  }

 private:
  std::uint64_t bytes_of(std::uint32_t operand) const {
    return space_of(graph_.operand(operand), alignment_);
  }
  void reserve(std::uint32_t operand, std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t k = first; k <= last; ++k) used_[k] += bytes_of(operand);
  }
  std::uint32_t next_use(std::uint32_t operand, std::uint32_t after) const {
    const auto next = std::upper_bound(uses_[operand].begin(), uses_[operand].end(), after);
    return next == uses_[operand].end() ? kNever : *next;
  }
  std::uint32_t second_stay(std::uint32_t operand) const {
    for (const Stay& stay : stays_) {
      if (stay.operand == operand && stay.number == 1) return stay.first;
    }
    return kNever;
  }

  void find_stays() {
    std::vector<std::size_t> open;  // of stays_
    std::vector<std::uint32_t> count(graph_.operands(), 0);
    std::uint64_t bytes = 0;
    for (std::uint32_t k = 0; k < graph_.kernels(); ++k) {
      if (graph_.place(k) == 0) continue;
      std::vector<std::uint32_t> needed(graph_.reads(k).begin(), graph_.reads(k).end());
      needed.insert(needed.end(), graph_.writes(k).begin(), graph_.writes(k).end());
      const auto is_needed = [&](std::size_t stay) {
        return std::find(needed.begin(), needed.end(), stays_[stay].operand) != needed.end();
      };
      std::uint64_t coming = 0, needs = 0;
      for (const std::uint32_t operand : needed) {
        const bool is_here = std::any_of(open.begin(), open.end(),
                                         [&](std::size_t stay) { return stays_[stay].operand == operand; });
        needs += bytes_of(operand);
        if (!is_here) coming += bytes_of(operand);
      }
      if (needs > limit_) {
        throw Error(
            Error::Kind::kOutOfMemory,
            fmt::format("schedule_bounded: kernel {} ({}) needs {} bytes of the device, and there are {}", k,
                        graph_.kernel_name(k), needs, limit_));
      }
      while (bytes + coming > limit_) {
        auto farthest = open.end();
        for (auto stay = open.begin(); stay != open.end(); ++stay) {
          if (is_needed(*stay)) continue;
          if (farthest == open.end() ||
              next_use(stays_[*stay].operand, k) > next_use(stays_[*farthest].operand, k))
            farthest = stay;
        }
        bytes -= bytes_of(stays_[*farthest].operand);
        open.erase(farthest);
      }
      for (const std::uint32_t operand : needed) {
        const auto here = std::find_if(open.begin(), open.end(),
                                       [&](std::size_t stay) { return stays_[stay].operand == operand; });
        if (here != open.end()) {
          stays_[*here].last = k;
          continue;
        }
        open.push_back(stays_.size());
        stays_.push_back({operand, k, k, count[operand]++});
        bytes += bytes_of(operand);
      }
      open.erase(std::remove_if(open.begin(), open.end(),
                                [&](std::size_t stay) {
                                  if (next_use(stays_[stay].operand, k) != kNever) return false;
                                  bytes -= bytes_of(stays_[stay].operand);
                                  return true;
                                }),
                 open.end());
    }
  }

  const OperandGraph& graph_;
  const std::uint64_t limit_, alignment_;
  std::vector<std::vector<std::uint32_t>> uses_;
  std::vector<std::uint64_t> used_;  // bytes, by kernel
  std::vector<Stay> stays_;
};

/// Each transfer by itself, at its last time up and its first time down.
Schedule separate(const OperandGraph& graph, const std::vector<Transfer>& transfers) {
  Schedule schedule;
  for (std::uint32_t i = 0; i < graph.operands(); ++i) schedule.order.push_back(i);
  for (const Transfer& transfer : transfers) {
    schedule.startups.push_back({transfer.from, transfer.to,
                                 transfer.is_upload() ? transfer.latest : transfer.earliest, transfer.operand,
                                 1});
  }
  sort_startups(schedule.startups);
  return schedule;
}

}  // namespace

BoundedSchedule schedule_bounded(const OperandGraph& graph, std::uint64_t device_bytes,
                                 std::uint64_t alignment) {
  if (graph.places() > 2 || graph.has_versions()) {
    throw Error(
        Error::Kind::kTransfer,
        fmt::format("schedule_bounded: a graph of {} devices{}: it bounds the memory of one, of single "
                    "assignment",
                    graph.places() - 1, graph.has_versions() ? " that changes operands in place" : ""));
  }
  std::optional<BoundedSchedule> best;
  const auto consider = [&](std::vector<Transfer> transfers, Schedule schedule) {
    schedule.transfers = static_cast<std::uint32_t>(transfers.size());
    if (best && best->schedule.startups.size() <= schedule.startups.size()) return;
    Layout layout = lay_out(graph, schedule, alignment);
    if (layout.bytes.size() > 1 && layout.bytes[1] > device_bytes) return;
    best = BoundedSchedule{std::move(transfers), std::move(schedule), std::move(layout)};
  };
  // Neighbours that stay together leave holes: with fewer bytes to fill there is room for these.
  for (const std::uint32_t tenths : {10u, 9u, 8u, 7u, 6u, 5u}) {
    const std::uint64_t limit = device_bytes / 10 * tenths + device_bytes % 10 * tenths / 10;
    for (const bool as_many_times_as_fit : {true, false}) {
      try {
        const std::vector<Transfer> transfers =
            Residency(graph, limit, alignment).transfers(as_many_times_as_fit);
        consider(transfers, crosses_once(graph, transfers) ? schedule_exact(graph, transfers)
                                                           : schedule_shared(graph, transfers));
        consider(transfers, separate(graph, transfers));
      } catch (const Error& error) {
        // With all bytes that is the answer; with fewer, one way less.
        if (tenths == 10 || error.kind() != Error::Kind::kOutOfMemory) throw;
      }
    }
  }
  auto bound = static_cast<std::uint32_t>(disjoint_transfers(transfers_of(graph)).size());
  if (graph.operands() <= kMostSearched) {
    const std::uint32_t limit = best ? static_cast<std::uint32_t>(best->schedule.startups.size()) : kNever;
    detail::BoundedSearch found = detail::search_bounded(graph, device_bytes, alignment, limit, kMostNodes);
    bound = std::max(bound, found.bound);
    if (found.best) best = std::move(found.best);
  }
  if (best) {
    best->schedule.certificate.clear();
    best->schedule.lower_bound = bound;
    return std::move(*best);
  }
  const Layout smallest =
      lay_out(graph, separate(graph, Residency(graph, device_bytes, alignment).transfers(false)), alignment);
  throw Error(Error::Kind::kOutOfMemory,
              fmt::format("schedule_bounded: no layout in {} bytes of the device was found; one takes {}",
                          device_bytes, smallest.bytes.back()));
}

}  // namespace esker::transfer
