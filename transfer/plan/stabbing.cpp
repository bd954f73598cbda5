// Earliest deadline first over the transfers of each pair of places.
#include <esker/transfer/plan/stabbing.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <esker/error.hpp>

namespace esker::transfer {

namespace {

/// A transfer in the order of deadlines: those of a pair of places stand together, uploads first.
struct Deadline {
  std::uint64_t key;
  std::uint32_t transfer;
};

std::uint32_t pair_of(const Transfer& transfer) {
  return (transfer.is_upload() ? 0u : 1u << 31) | static_cast<std::uint32_t>(transfer.from) << 16 |
         transfer.to;
}

std::vector<Deadline> by_deadline(std::span<const Transfer> transfers) {
  std::vector<Deadline> all(transfers.size());
  for (std::uint32_t i = 0; i < transfers.size(); ++i)
    all[i] = {std::uint64_t{pair_of(transfers[i])} << 32 | transfers[i].latest, i};
  std::sort(all.begin(), all.end(), [](const Deadline& a, const Deadline& b) {
    return a.key != b.key ? a.key < b.key : a.transfer < b.transfer;
  });
  return all;
}

/// The end of those that have the pair of places of the one at `begin`.
std::size_t end_of_pair(const std::vector<Deadline>& all, std::size_t begin) {
  std::size_t end = begin + 1;
  while (end < all.size() && all[end].key >> 32 == all[begin].key >> 32) ++end;
  return end;
}

/// Of its pair of places' points, in order, that which keeps the operand on the device the shortest.
std::vector<std::uint32_t>::const_iterator point_of(const Transfer& transfer,
                                                    const std::vector<std::uint32_t>& points) {
  return transfer.is_upload() ? std::upper_bound(points.begin(), points.end(), transfer.latest) - 1
                              : std::lower_bound(points.begin(), points.end(), transfer.earliest);
}

}  // namespace

std::vector<std::uint32_t> stabbing_times(std::span<const Transfer> transfers) {
  const std::vector<Deadline> all = by_deadline(transfers);
  std::vector<std::uint32_t> times(transfers.size()), points;
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    end = end_of_pair(all, begin);
    points.clear();
    for (std::size_t i = begin; i < end; ++i) {
      const Transfer& transfer = transfers[all[i].transfer];
      if (points.empty() || transfer.earliest > points.back()) points.push_back(transfer.latest);
    }
    for (std::size_t i = begin; i < end; ++i)
      times[all[i].transfer] = *point_of(transfers[all[i].transfer], points);
  }
  return times;
}

std::vector<std::uint32_t> disjoint_transfers(std::span<const Transfer> transfers) {
  const std::vector<Deadline> all = by_deadline(transfers);
  std::vector<std::uint32_t> disjoint;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Transfer& transfer = transfers[all[i].transfer];
    const bool is_first = i == 0 || all[i].key >> 32 != all[i - 1].key >> 32;
    if (is_first || transfer.earliest > transfers[disjoint.back()].latest)
      disjoint.push_back(all[i].transfer);
  }
  return disjoint;
}

bool crosses_once(const OperandGraph& graph, std::span<const Transfer> transfers) {
  std::vector<bool> crosses(graph.operands(), false);
  for (const Transfer& transfer : transfers) {
    const std::uint32_t storage = graph.storage(transfer.operand);
    if (crosses[storage] || graph.operand(storage).host_address != 0) return false;
    crosses[storage] = true;
  }
  return true;
}

Schedule schedule_exact(const OperandGraph& graph, std::span<const Transfer> transfers) {
  Schedule schedule;
  schedule.transfers = static_cast<std::uint32_t>(transfers.size());
  schedule.order.reserve(graph.operands());
  const std::vector<Deadline> all = by_deadline(transfers);
  std::vector<std::uint8_t> is_placed(graph.operands(), 0);
  std::vector<std::uint32_t> times, starts, group_of(all.size());
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    end = end_of_pair(all, begin);
    times.clear();
    for (std::size_t i = begin; i < end; ++i) {
      const Transfer& transfer = transfers[all[i].transfer];
      if (!times.empty() && transfer.earliest <= times.back()) continue;
      times.push_back(transfer.latest);
      schedule.certificate.push_back(all[i].transfer);
    }
    const auto base = static_cast<std::uint32_t>(schedule.order.size());
    starts.assign(times.size() + 1, base);
    for (std::size_t i = begin; i < end; ++i) {
      const Transfer& transfer = transfers[all[i].transfer];
      group_of[i] = static_cast<std::uint32_t>(point_of(transfer, times) - times.begin());
      ++starts[group_of[i] + 1];
    }
    for (std::size_t group = 0; group < times.size(); ++group) {
      const std::uint32_t count = starts[group + 1] - base;
      starts[group + 1] = starts[group] + count;
      const Transfer& one = transfers[all[begin].transfer];
      schedule.startups.push_back({one.from, one.to, times[group], starts[group], count});
    }
    schedule.order.resize(base + (end - begin));
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint32_t storage = graph.storage(transfers[all[i].transfer].operand);
      if (is_placed[storage] != 0 || graph.operand(storage).host_address != 0) {
        throw Error(Error::Kind::kTransfer,
                    fmt::format("schedule_exact: operand {} {}: make_schedule() takes such graphs", storage,
                                is_placed[storage] != 0 ? "crosses more than once" : "has an address"));
      }
      is_placed[storage] = 1;
      schedule.order[starts[group_of[i]]++] = storage;
    }
  }
  for (std::uint32_t i = 0; i < graph.operands(); ++i) {
    if (is_placed[i] == 0 && graph.storage(i) == i) schedule.order.push_back(i);
  }
  schedule.lower_bound = static_cast<std::uint32_t>(schedule.certificate.size());
  sort_startups(schedule.startups);
  return schedule;
}

}  // namespace esker::transfer
