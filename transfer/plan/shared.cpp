// Storages that cross more than once, in one memory order.
#include <esker/transfer/plan/shared.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

#include <esker/transfer/plan/memory_order.hpp>
#include <esker/transfer/plan/stabbing.hpp>

namespace esker::transfer {

namespace {

using detail::Item;
using detail::Row;
using detail::Run;

bool can_share(const Item& a, const Item& b) {
  for (const detail::Window& one : a.windows) {
    for (const detail::Window& other : b.windows) {
      if (overlap(one, other)) return true;
    }
  }
  return false;
}

/// Sets of items of which no two share a startup with an item of another set.
std::vector<std::vector<Item>> independent_sets(std::vector<Item> items) {
  std::vector<std::size_t> set_of(items.size());
  std::iota(set_of.begin(), set_of.end(), std::size_t{0});
  for (std::size_t a = 0; a < items.size(); ++a) {
    for (std::size_t b = a + 1; b < items.size(); ++b) {
      if (set_of[a] != set_of[b] && can_share(items[a], items[b]))
        std::replace(set_of.begin(), set_of.end(), std::size_t{set_of[b]}, std::size_t{set_of[a]});
    }
  }
  std::vector<std::vector<Item>> sets(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) sets[set_of[i]].push_back(std::move(items[i]));
  sets.erase(std::remove_if(sets.begin(), sets.end(), [](const auto& set) { return set.empty(); }),
             sets.end());
  return sets;
}

/// Stretches of items that stand next to each other at addresses of the host.
std::vector<std::vector<Item>> neighbours_at_addresses(const OperandGraph& graph, std::vector<Item> items) {
  std::sort(items.begin(), items.end(), [&](const Item& a, const Item& b) {
    return graph.operand(a.storage).host_address < graph.operand(b.storage).host_address;
  });
  std::vector<std::vector<Item>> stretches;
  std::uint64_t end = 0;
  for (Item& item : items) {
    const Operand& operand = graph.operand(item.storage);
    if (stretches.empty() || operand.host_address != end) stretches.emplace_back();
    end = operand.host_address + operand.bytes;
    stretches.back().push_back(std::move(item));
  }
  return stretches;
}

bool crosses_once_a_lane(const std::vector<Item>& items) {
  for (const Item& item : items) {
    for (std::size_t i = 0; i < item.windows.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (item.windows[i].lane == item.windows[j].lane) return false;
      }
    }
  }
  return true;
}

}  // namespace

Schedule schedule_shared(const OperandGraph& graph, std::span<const Transfer> transfers,
                         std::uint32_t most_searched) {
  // The search keeps the items that it has placed in a word.
  most_searched = std::min(most_searched, 30u);
  std::vector<std::pair<std::uint16_t, std::uint16_t>> lanes;
  std::vector<Item> items(graph.operands());
  for (std::uint32_t i = 0; i < transfers.size(); ++i) {
    const Transfer& transfer = transfers[i];
    const std::pair places(transfer.from, transfer.to);
    auto lane = std::find(lanes.begin(), lanes.end(), places);
    if (lane == lanes.end()) lane = lanes.insert(lanes.end(), places);
    items[graph.storage(transfer.operand)].windows.push_back(
        {static_cast<std::uint32_t>(lane - lanes.begin()), transfer.earliest, transfer.latest, i});
  }
  std::vector<Item> placed_by_us, at_addresses;
  std::vector<std::uint32_t> rest;
  for (std::uint32_t storage = 0; storage < graph.operands(); ++storage) {
    items[storage].storage = storage;
    if (graph.storage(storage) != storage) continue;
    if (items[storage].windows.empty()) {
      rest.push_back(storage);
    } else if (graph.operand(storage).host_address != 0) {
      at_addresses.push_back(std::move(items[storage]));
    } else {
      placed_by_us.push_back(std::move(items[storage]));
    }
  }

  Schedule schedule;
  schedule.transfers = static_cast<std::uint32_t>(transfers.size());
  schedule.certificate = disjoint_transfers(transfers);
  const auto add = [&](const Row& row) {
    const auto base = static_cast<std::uint32_t>(schedule.order.size());
    for (const Item* item : row.items) schedule.order.push_back(item->storage);
    for (const Run& run : row.runs) {
      const auto [from, to] = lanes[run.lane];
      // At the time that keeps it on a device the shortest.
      schedule.startups.push_back(
          {from, to, to != 0 ? run.latest : run.earliest, base + run.first, run.count});
    }
  };
  const auto pointers_to = [](const std::vector<Item>& all) {
    std::vector<const Item*> pointers;
    pointers.reserve(all.size());
    for (const Item& item : all) pointers.push_back(&item);
    return pointers;
  };
  std::uint32_t proved = 0;
  for (const std::vector<Item>& stretch : neighbours_at_addresses(graph, std::move(at_addresses))) {
    Row row{pointers_to(stretch), {}};
    row.runs = detail::runs_of(row.items);
    // In its only order greedy runs are the fewest where an item crosses once a lane.
    proved += crosses_once_a_lane(stretch) ? static_cast<std::uint32_t>(row.runs.size())
                                           : detail::least_runs(stretch);
    add(row);
  }
  for (const std::vector<Item>& set : independent_sets(std::move(placed_by_us))) {
    Row row = detail::heuristic_row(set);
    if (set.size() <= most_searched) {
      row = detail::search_row(set, row);
      proved += static_cast<std::uint32_t>(row.runs.size());
    } else {
      proved += detail::least_runs(set);
    }
    add(row);
  }
  schedule.lower_bound = std::max(proved, static_cast<std::uint32_t>(schedule.certificate.size()));
  schedule.order.insert(schedule.order.end(), rest.begin(), rest.end());
  sort_startups(schedule.startups);
  return schedule;
}

}  // namespace esker::transfer
