// Bandwidth allocation and time division, which the batch method is compared with.
#include <algorithm>
#include <map>
#include <numeric>

#include <esker/transfer/batch/arrangement.hpp>
#include <esker/transfer/batch/schedule.hpp>

namespace esker::transfer {

namespace {

/// Kernels of each sequence after its copies, where each begins as soon as its own copy has ended and the
/// device is free. Then what follows from all times.
void finish(const Topology& topology, std::span<const StreamModel> streams, Timeline* schedule) {
  for (const Leg& leg : schedule->legs) {
    StreamTimes& times = schedule->streams[leg.stream];
    if (leg.source == Leg::kNone) times.copy_begin_s = leg.begin_s;
    times.copy_end_s = leg.end_s;
    times.end_s = std::max(times.end_s, leg.end_s);
  }
  for (const Sequence& sequence : schedule->sequences) {
    std::vector<std::uint32_t> order = sequence.kernels;
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return schedule->streams[a].copy_end_s < schedule->streams[b].copy_end_s;
    });
    double free_s = sequence.begin_s;
    for (const std::uint32_t stream : order) {
      StreamTimes& times = schedule->streams[stream];
      times.kernel_begin_s = std::max(free_s, times.copy_end_s);
      times.kernel_end_s = free_s = times.kernel_begin_s + streams[stream].kernel_s;
      times.end_s = times.kernel_end_s;
    }
  }
  schedule->makespan_s = 0;
  for (const StreamTimes& times : schedule->streams)
    schedule->makespan_s = std::max(schedule->makespan_s, times.end_s);
  set_utilisation(topology, schedule);
}

/// The bandwidth of a route, and the link that limits it.
struct Narrowest {
  double bytes_per_s = std::numeric_limits<double>::infinity();
  std::uint32_t link = Leg::kNone;
};
Narrowest narrowest(const Topology& topology, const Topology::Route& route,
                    const std::vector<std::uint32_t>& holders) {
  Narrowest result;
  for (const std::uint32_t link : route) {
    const LinkRate& rate = topology.links()[link].rate;
    const double whole = holders[Topology::opposite(link)] > 0 ? rate.both() : rate.bytes_per_s;
    const double part = whole / std::max(1u, holders[link]);
    if (part < result.bytes_per_s) result = {part, link};
  }
  return result;
}

}  // namespace

Timeline allocate_bandwidth(const Topology& topology, std::span<const StreamModel> streams,
                            std::span<const StreamModel> reserved) {
  Timeline schedule = arrange(topology, streams);
  std::vector<std::uint32_t> holders(topology.links().size(), 0);
  for (const Leg& leg : arrange(topology, reserved.empty() ? streams : reserved).legs) {
    for (const std::uint32_t link : leg.route) ++holders[link];
  }
  std::vector<bool> has_times(schedule.legs.size(), false);
  std::vector<std::size_t> next(schedule.sequences.size(), 0);
  // A second half follows its first, which another sequence may not have come to yet.
  for (bool has_moved = true; has_moved;) {
    has_moved = false;
    for (std::size_t s = 0; s < schedule.sequences.size(); ++s) {
      const Sequence& sequence = schedule.sequences[s];
      for (; next[s] < sequence.legs.size(); ++next[s]) {
        Leg& leg = schedule.legs[sequence.legs[next[s]]];
        if (leg.source != Leg::kNone && !has_times[leg.source]) break;
        const double engine_free = next[s] == 0 ? 0 : schedule.legs[sequence.legs[next[s] - 1]].end_s;
        const double there = leg.source == Leg::kNone ? 0 : schedule.legs[leg.source].end_s;
        const Narrowest part = narrowest(topology, leg.route, holders);
        leg.begin_s = std::max(engine_free, there);
        leg.end_s = leg.begin_s + leg.startup_s + leg.bytes / part.bytes_per_s;
        leg.bottleneck = part.link;
        has_times[sequence.legs[next[s]]] = has_moved = true;
      }
    }
  }
  finish(topology, streams, &schedule);
  return schedule;
}

Timeline divide_time(const Topology& topology, std::span<const StreamModel> streams) {
  Timeline schedule = arrange(topology, streams);
  std::vector<std::uint32_t> order(streams.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return streams[a].kernel_s > streams[b].kernel_s;
  });
  std::map<std::uint32_t, std::vector<std::uint32_t>> legs_of;
  for (std::uint32_t id = 0; id < schedule.legs.size(); ++id) legs_of[schedule.legs[id].stream].push_back(id);
  const std::vector<std::uint32_t> nobody(topology.links().size(), 0);
  double t = 0;
  for (const std::uint32_t stream : order) {
    for (const std::uint32_t id : legs_of[stream]) {
      Leg& leg = schedule.legs[id];
      const Narrowest whole = narrowest(topology, leg.route, nobody);
      leg.begin_s = t;
      leg.end_s = t += leg.startup_s + leg.bytes / whole.bytes_per_s;
      leg.bottleneck = whole.link;
    }
  }
  finish(topology, streams, &schedule);
  return schedule;
}

}  // namespace esker::transfer
