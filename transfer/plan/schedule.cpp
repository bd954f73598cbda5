// Schedules: the baseline, the check, the listing.
#include <esker/transfer/plan/schedule.hpp>

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include <esker/error.hpp>
#include <esker/transfer/plan/stabbing.hpp>

namespace esker::transfer {

namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Error::Kind::kTransfer, "check_schedule: " + why);
}

}  // namespace

void sort_startups(std::vector<Startup>& startups) {
  std::sort(startups.begin(), startups.end(), [](const Startup& a, const Startup& b) {
    return std::tuple(a.time, !a.is_upload(), a.to, a.from, a.first) <
           std::tuple(b.time, !b.is_upload(), b.to, b.from, b.first);
  });
}

Schedule schedule_unfused(const OperandGraph& graph, std::span<const Transfer> transfers) {
  Schedule schedule;
  schedule.transfers = static_cast<std::uint32_t>(transfers.size());
  schedule.certificate = disjoint_transfers(transfers);
  schedule.lower_bound = static_cast<std::uint32_t>(schedule.certificate.size());
  for (std::uint32_t i = 0; i < graph.operands(); ++i) {
    if (graph.storage(i) == i) schedule.order.push_back(i);
  }
  std::vector<std::uint32_t> place_of(graph.operands(), 0);
  for (std::uint32_t i = 0; i < schedule.order.size(); ++i) place_of[schedule.order[i]] = i;
  std::vector<std::uint32_t> last_use(graph.operands(), 0);
  for (std::uint32_t k = 0; k < graph.kernels(); ++k) {
    if (graph.place(k) == 0) continue;
    for (const std::uint32_t operand : graph.reads(k)) last_use[operand] = k;
    for (const std::uint32_t operand : graph.writes(k)) last_use[operand] = k;
  }
  for (const Transfer& transfer : transfers) {
    const std::uint32_t time =
        transfer.is_upload() ? transfer.latest
                             : std::clamp(last_use[transfer.operand], transfer.earliest, transfer.latest);
    schedule.startups.push_back(
        {transfer.from, transfer.to, time, place_of[graph.storage(transfer.operand)], 1});
  }
  sort_startups(schedule.startups);
  return schedule;
}

void check_schedule(const OperandGraph& graph, std::span<const Transfer> transfers,
                    const Schedule& schedule) {
  std::vector<std::uint32_t> seen(graph.operands(), 0);
  for (const std::uint32_t storage : schedule.order) {
    if (storage >= graph.operands() || graph.storage(storage) != storage)
      refuse(fmt::format("{} in the memory order is not an operand's storage", storage));
    if (++seen[storage] > 1) refuse(name_of(graph, storage) + " stands in memory twice");
  }
  for (std::uint32_t i = 0; i < graph.operands(); ++i) {
    if (graph.storage(i) == i && seen[i] == 0) refuse(name_of(graph, i) + " has no place in memory");
  }
  std::vector<std::uint32_t> moved(transfers.size(), 0);
  for (const Startup& startup : schedule.startups) {
    const std::uint64_t end = std::uint64_t{startup.first} + startup.count;
    if (startup.count == 0 || end > schedule.order.size())
      refuse(fmt::format("a startup of places {} to {} in memory, which has {}", startup.first, end,
                         schedule.order.size()));
    for (std::uint32_t i = startup.first; i < startup.first + startup.count; ++i) {
      const std::uint32_t storage = schedule.order[i];
      bool is_found = false;
      for (std::size_t t = 0; t < transfers.size(); ++t) {
        const Transfer& transfer = transfers[t];
        if (graph.storage(transfer.operand) != storage || transfer.from != startup.from ||
            transfer.to != startup.to || !transfer.is_at(startup.time))
          continue;
        ++moved[t];
        is_found = true;
      }
      if (!is_found)
        refuse(fmt::format("{} cannot go from place {} to {} at time {}", name_of(graph, storage),
                           startup.from, startup.to, startup.time));
    }
  }
  for (std::size_t t = 0; t < transfers.size(); ++t) {
    if (moved[t] != 1)
      refuse(fmt::format("{} is moved {} times from place {} to {}", name_of(graph, transfers[t].operand),
                         moved[t], transfers[t].from, transfers[t].to));
  }
}

std::string listing(const OperandGraph& graph, const Schedule& schedule) {
  std::string text;
  std::size_t next = 0;
  const auto copies_of = [&](std::uint32_t time, bool is_upload) {
    for (; next < schedule.startups.size(); ++next) {
      const Startup& startup = schedule.startups[next];
      if (startup.time != time || startup.is_upload() != is_upload) return;
      for (std::uint32_t i = startup.first; i < startup.first + startup.count; ++i) {
        text += fmt::format("{} {}: {} {} {} location {}{}\n", is_upload ? "before" : "after", time,
                            is_upload ? "upload" : "download", name_of(graph, schedule.order[i]),
                            is_upload ? "from" : "to", i,
                            graph.places() == 2 ? std::string()
                            : startup.from != 0 && startup.to != 0
                                ? fmt::format(" of device {} to device {}", startup.from - 1, startup.to - 1)
                            : startup.from != 0 ? fmt::format(" from device {}", startup.from - 1)
                                                : fmt::format(" to device {}", startup.to - 1));
      }
    }
  };
  for (std::uint32_t k = 0; k < graph.kernels(); ++k) {
    copies_of(k, true);
    std::string uses;
    for (const std::uint32_t operand : graph.reads(k))
      uses += fmt::format(", R({})", name_of(graph, operand));
    for (const std::uint32_t operand : graph.writes(k))
      uses += fmt::format(", W({})", name_of(graph, operand));
    text += fmt::format("{} ({})\n", graph.kernel_name(k), uses.empty() ? uses : uses.substr(2));
    copies_of(k, false);
  }
  return text;
}

}  // namespace esker::transfer
