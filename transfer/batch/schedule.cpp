// The batch method: Algorithm 1.
#include <esker/transfer/batch/schedule.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <utility>

#include <esker/error.hpp>
#include <esker/transfer/batch/arrangement.hpp>
#include <esker/transfer/batch/throughput.hpp>

#include <fmt/format.h>

namespace esker::transfer {

namespace {

/// The first half of a staged copy begins a piece before the second one: earlier than it did, or all others
/// later.
void order_halves(const Topology& topology, Timeline* schedule) {
  const auto sequence_of = [&](std::uint32_t leg) -> Sequence& {
    for (Sequence& sequence : schedule->sequences) {
      if (std::find(sequence.legs.begin(), sequence.legs.end(), leg) != sequence.legs.end()) return sequence;
    }
    return schedule->sequences.front();
  };
  double earliest = 0;
  for (std::uint32_t id = 0; id < schedule->legs.size(); ++id) {
    const Leg& leg = schedule->legs[id];
    if (leg.source == Leg::kNone) continue;
    const Leg& first = schedule->legs[leg.source];
    double rate = std::numeric_limits<double>::infinity();
    for (const std::uint32_t link : first.route) rate = std::min(rate, topology.links()[link].rate.both());
    const double latest = leg.begin_s - first.startup_s - std::min(kStageBytes, leg.bytes) / rate;
    Sequence& sequence = sequence_of(leg.source);
    sequence.begin_s = std::min(sequence.begin_s, sequence.begin_s + latest - first.begin_s);
    earliest = std::min(earliest, sequence.begin_s);
  }
  for (Sequence& sequence : schedule->sequences) sequence.begin_s -= earliest;
}

}  // namespace

Timeline align_ends(const Topology& topology, std::span<const StreamModel> streams) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  Timeline schedule = arrange(topology, streams);
  // Time runs backwards from the end of the batch, which is 0. A merged stream begins with its last copy.
  struct Copying {
    std::uint32_t sequence;
    double left;  // bytes of its leg
  };
  std::vector<std::size_t> legs_left(schedule.sequences.size());
  using Start = std::pair<double, std::uint32_t>;
  std::priority_queue<Start, std::vector<Start>, std::greater<>> data_start;
  double makespan = 0, setup = 0;
  for (std::uint32_t s = 0; s < schedule.sequences.size(); ++s) {
    const Sequence& sequence = schedule.sequences[s];
    legs_left[s] = sequence.legs.size();
    makespan = std::max(makespan, sequence.kernels_s);
    if (sequence.legs.empty()) continue;
    data_start.emplace(sequence.kernels_s, s);
    setup = std::max(setup, schedule.legs[sequence.legs[0]].startup_s);
  }
  std::vector<Copying> workload;
  std::vector<double> longest(schedule.legs.size(), 0);
  const auto leg_of = [&](std::uint32_t s) -> Leg& {
    return schedule.legs[schedule.sequences[s].legs[legs_left[s] - 1]];
  };
  double t = data_start.empty() ? 0 : data_start.top().first;
  while (!data_start.empty() || !workload.empty()) {
    for (; !data_start.empty() && data_start.top().first <= t; data_start.pop()) {
      const std::uint32_t s = data_start.top().second;
      leg_of(s).end_s = data_start.top().first;
      workload.push_back({s, leg_of(s).bytes});
    }
    std::vector<Flow> flows;
    flows.reserve(workload.size());
    for (const Copying& copying : workload) flows.push_back({&leg_of(copying.sequence).route});
    const Throughput rates = throughput(topology, flows);
    double next = kNever;
    if (!data_start.empty()) next = data_start.top().first;
    std::vector<double> ends;
    for (std::size_t i = 0; i < workload.size(); ++i) {
      ends.push_back(t + workload[i].left / rates.bytes_per_s[i]);
      next = std::min(next, ends[i]);
    }
    std::vector<Copying> still;
    for (std::size_t i = 0; i < workload.size(); ++i) {
      const std::uint32_t s = workload[i].sequence;
      Leg& leg = leg_of(s);
      double& longest_here = longest[static_cast<std::size_t>(&leg - schedule.legs.data())];
      if (next - t >= longest_here) {
        longest_here = next - t;
        leg.bottleneck = rates.bottlenecks[i];
      }
      // By the event, not by what is left: rounding may leave bytes that take less than a step of the clock.
      if (ends[i] > next) {
        still.push_back({s, std::max(0.0, workload[i].left - (next - t) * rates.bytes_per_s[i])});
        continue;
      }
      leg.begin_s = next;
      if (--legs_left[s] == 0) continue;
      leg.begin_s = next + leg.startup_s;
      data_start.emplace(leg.begin_s, s);
    }
    workload = std::move(still);
    t = next;
    makespan = std::max(makespan, t);
  }
  makespan += setup;
  // Time runs forwards again.
  for (Leg& leg : schedule.legs) {
    leg.begin_s = makespan - leg.begin_s;
    leg.end_s = makespan - leg.end_s;
  }
  bool has_halves = false;
  for (const Leg& leg : schedule.legs) has_halves = has_halves || leg.source != Leg::kNone;
  for (Sequence& sequence : schedule.sequences) {
    sequence.begin_s = makespan - sequence.kernels_s;
    if (sequence.legs.empty()) continue;
    // What it starts with is before its first byte.
    Leg& first = schedule.legs[sequence.legs[0]];
    first.begin_s -= first.startup_s;
    sequence.begin_s = first.begin_s;
  }
  if (has_halves) {
    order_halves(topology, &schedule);
    run_forwards(topology, streams, &schedule);
    return schedule;
  }
  schedule.makespan_s = makespan;
  for (const Sequence& sequence : schedule.sequences)
    set_kernel_times(streams, &schedule, sequence, makespan - sequence.kernels_s);
  for (const Leg& leg : schedule.legs) {
    StreamTimes& times = schedule.streams[leg.stream];
    times.copy_begin_s = leg.begin_s;
    times.copy_end_s = leg.end_s;
    times.end_s = std::max(times.end_s, leg.end_s);
  }
  set_utilisation(topology, &schedule);
  return schedule;
}

Timeline replay(const Topology& topology, std::span<const StreamModel> streams, const Timeline& schedule) {
  Timeline again = arrange(topology, streams);
  if (again.sequences.size() != schedule.sequences.size() || again.legs.size() != schedule.legs.size()) {
    throw Error(Error::Kind::kTransfer,
                fmt::format("replay: the schedule has {} sequences of {} copies, its streams make {} of {}",
                            schedule.sequences.size(), schedule.legs.size(), again.sequences.size(),
                            again.legs.size()));
  }
  for (std::size_t i = 0; i < again.legs.size(); ++i) {
    if (again.legs[i].stream == schedule.legs[i].stream && again.legs[i].route == schedule.legs[i].route)
      continue;
    throw Error(Error::Kind::kTransfer,
                fmt::format("replay: copy {} of the schedule is of stream {}, here of stream {}, or goes "
                            "another way",
                            i, schedule.legs[i].stream, again.legs[i].stream));
  }
  for (std::size_t s = 0; s < again.sequences.size(); ++s)
    again.sequences[s].begin_s = schedule.sequences[s].begin_s;
  run_forwards(topology, streams, &again);
  return again;
}

}  // namespace esker::transfer
