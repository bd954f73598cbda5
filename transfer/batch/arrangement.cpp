// Legs and sequences of a batch, and the batch run forwards.
#include <esker/transfer/batch/arrangement.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <esker/error.hpp>
#include <esker/transfer/batch/throughput.hpp>

#include <fmt/format.h>

namespace esker::transfer {

namespace {

using Kind = Topology::Kind;
using Engines = Topology::Engines;

[[noreturn]] void refuse_stream(std::size_t stream, const std::string& why) {
  throw Error(Error::Kind::kTransfer, fmt::format("batch: stream {}: {}", stream, why));
}

void check(const Topology& topology, std::size_t index, const StreamModel& stream) {
  const auto is_amount = [](double value) { return std::isfinite(value) && value >= 0; };
  if (!is_amount(stream.bytes) || !is_amount(stream.kernel_s)) {
    refuse_stream(index, fmt::format("{} bytes and a kernel of {} s: neither may be negative", stream.bytes,
                                     stream.kernel_s));
  }
  if (!is_amount(stream.pieces) || stream.pieces < 1)
    refuse_stream(index, fmt::format("{} pieces: at least 1", stream.pieces));
  const auto& nodes = topology.nodes();
  if (stream.to >= nodes.size() || stream.from >= nodes.size()) {
    refuse_stream(index, fmt::format("node {} is not in topology '{}', which has {}",
                                     std::max(stream.from, stream.to), topology.name(), nodes.size()));
  }
  const auto is_end = [&](std::uint32_t node) {
    return nodes[node].kind == Kind::kDevice || nodes[node].kind == Kind::kMemory;
  };
  if (stream.bytes > 0) {
    for (const std::uint32_t node : {stream.from, stream.to}) {
      if (!is_end(node))
        refuse_stream(index, fmt::format("{} is a {}: copies go between memories and devices",
                                         nodes[node].name, to_string(nodes[node].kind)));
    }
    if (stream.from == stream.to && nodes[stream.to].kind == Kind::kDevice)
      refuse_stream(index, fmt::format("a copy within {} uses no link: copy_batch() or a kernel does it",
                                       nodes[stream.to].name));
    if (nodes[stream.from].kind == Kind::kMemory && nodes[stream.to].kind == Kind::kMemory) {
      refuse_stream(index, fmt::format("a copy from {} to {}: at least one end is a device",
                                       nodes[stream.from].name, nodes[stream.to].name));
    }
  }
  if (stream.kernel_s > 0 && nodes[stream.to].kind != Kind::kDevice) {
    refuse_stream(index,
                  fmt::format("a kernel on {}, which is a {}{}", nodes[stream.to].name,
                              to_string(nodes[stream.to].kind),
                              stream.bytes > 0 ? ": a kernel follows a copy to its device; one before a "
                                                 "copy to the host is a batch before this one"
                                               : ""));
  }
}

/// Whoever shares it runs one after the other.
using EngineKey = std::pair<std::uint32_t, int>;
EngineKey engine_of(const Topology& topology, std::uint32_t device, bool leaves) {
  switch (topology.nodes()[device].engines) {
    case Engines::kCaller:
      return {~0u, 0};
    case Engines::kOne:
      return {device, 0};
    case Engines::kADirection:
      break;
  }
  return {device, leaves ? 1 : 0};
}

}  // namespace

Timeline arrange(const Topology& topology, std::span<const StreamModel> streams) {
  Timeline schedule;
  schedule.streams.resize(streams.size());
  std::map<EngineKey, std::uint32_t> of_engine;
  const auto sequence_of = [&](const EngineKey& key) -> Sequence& {
    const auto [at, is_new] = of_engine.emplace(key, static_cast<std::uint32_t>(schedule.sequences.size()));
    if (is_new) schedule.sequences.emplace_back();
    return schedule.sequences[at->second];
  };
  const auto& nodes = topology.nodes();
  const auto add_leg = [&](std::size_t stream, std::uint32_t from, std::uint32_t to,
                           double bytes) -> Sequence& {
    Leg leg;
    leg.stream = static_cast<std::uint32_t>(stream);
    leg.route = topology.route(from, to);
    leg.bytes = bytes;
    const bool leaves = nodes[from].kind == Kind::kDevice;
    Sequence& sequence = sequence_of(engine_of(topology, leaves ? from : to, leaves));
    sequence.legs.push_back(static_cast<std::uint32_t>(schedule.legs.size()));
    schedule.legs.push_back(std::move(leg));
    return sequence;
  };

  for (std::size_t i = 0; i < streams.size(); ++i) check(topology, i, streams[i]);
  const auto is_staged = [&](const StreamModel& s) {
    return s.bytes > 0 && topology.is_staged(s.from, s.to);
  };
  std::vector<std::uint32_t> first_half(streams.size(), Leg::kNone);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (!is_staged(streams[i])) continue;
    first_half[i] = static_cast<std::uint32_t>(schedule.legs.size());
    add_leg(i, streams[i].from, topology.host(), streams[i].bytes);
  }
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const StreamModel& stream = streams[i];
    Sequence* sequence = nullptr;
    if (is_staged(stream)) {
      sequence = &add_leg(i, topology.host(), stream.to, stream.bytes);
      schedule.legs.back().source = first_half[i];
    } else if (stream.bytes > 0) {
      sequence = &add_leg(i, stream.from, stream.to, stream.bytes);
    }
    if (stream.kernel_s <= 0) continue;
    if (sequence == nullptr) {
      const bool is_alone = nodes[stream.to].engines != Engines::kCaller;
      sequence = &sequence_of(is_alone ? EngineKey{~0u - 1, static_cast<int>(i)}
                                       : engine_of(topology, stream.to, false));
    }
    sequence->kernels.push_back(static_cast<std::uint32_t>(i));
    sequence->kernels_s += stream.kernel_s;
  }
  // A further copy of a sequence has less to start, and so has a further piece.
  for (const Sequence& sequence : schedule.sequences) {
    for (std::size_t i = 0; i < sequence.legs.size(); ++i) {
      Leg& leg = schedule.legs[sequence.legs[i]];
      double startup = 0, further = 0;
      for (const std::uint32_t link : leg.route) {
        startup = std::max(startup, topology.links()[link].rate.startup_s);
        further = std::max(further, topology.links()[link].rate.further_s);
      }
      const StreamModel& stream = streams[leg.stream];
      const double pieces = is_staged(stream) ? std::ceil(stream.bytes / kStageBytes) : stream.pieces;
      leg.startup_s = (i == 0 ? startup : further) + (pieces - 1) * further;
    }
  }
  return schedule;
}

void set_kernel_times(std::span<const StreamModel> streams, Timeline* schedule, const Sequence& sequence,
                      double begin_s) {
  for (const std::uint32_t stream : sequence.kernels) {
    StreamTimes& times = schedule->streams[stream];
    times.kernel_begin_s = begin_s;
    times.kernel_end_s = begin_s += streams[stream].kernel_s;
    times.end_s = times.kernel_end_s;
  }
}

void set_utilisation(const Topology& topology, Timeline* schedule) {
  schedule->utilisation.assign(topology.links().size(), 0);
  for (const Leg& leg : schedule->legs) {
    for (const std::uint32_t link : leg.route) schedule->utilisation[link] += leg.bytes;
  }
  double highest = 0;
  for (std::uint32_t link = 0; link < schedule->utilisation.size(); ++link) {
    double& use = schedule->utilisation[link];
    use = schedule->makespan_s > 0 ? use / topology.links()[link].rate.bytes_per_s / schedule->makespan_s : 0;
    if (use <= highest) continue;
    highest = use;
    schedule->bottleneck = link;
  }
}

namespace {

/// A sequence that is run forwards.
struct Running {
  std::size_t next = 0;  // leg
  double starts_s = 0;   // when that leg moves its first byte
};

}  // namespace

// Time goes from event to event: a leg begins, ends, has its first piece in host memory, or catches up with
// its source. An event that is due has happened, whatever rounding says of the bytes; so each step has one.
void run_forwards(const Topology& topology, std::span<const StreamModel> streams, Timeline* schedule) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const std::vector<Leg>& legs = schedule->legs;
  std::vector<Running> running(schedule->sequences.size());
  std::vector<double> moved(legs.size(), 0), longest(legs.size(), 0);
  // Of a second half: bytes that its source has in host memory beyond the piece that is copied next. Below 0
  // it waits for its first piece; at 0 it goes no faster than its source.
  std::vector<double> ahead(legs.size(), 0);
  std::vector<bool> is_done(legs.size(), false);
  for (std::size_t id = 0; id < legs.size(); ++id) ahead[id] = -std::min(kStageBytes, legs[id].bytes);
  const auto has_running_source = [&](std::size_t id) {
    return legs[id].source != Leg::kNone && !is_done[legs[id].source];
  };
  for (std::size_t s = 0; s < running.size(); ++s) {
    const Sequence& sequence = schedule->sequences[s];
    if (sequence.legs.empty()) continue;
    Leg& leg = schedule->legs[sequence.legs[0]];
    leg.begin_s = sequence.begin_s;
    running[s].starts_s = sequence.begin_s + leg.startup_s;
  }
  std::size_t left = legs.size();
  for (double t = 0; left > 0;) {
    double next = kNever;
    std::vector<Flow> flows;
    std::vector<std::uint32_t> of_flow;
    std::vector<std::size_t> sequence_of_flow;
    for (std::size_t s = 0; s < running.size(); ++s) {
      const Sequence& sequence = schedule->sequences[s];
      if (running[s].next == sequence.legs.size()) continue;
      if (running[s].starts_s > t) {
        next = std::min(next, running[s].starts_s);
        continue;
      }
      const std::uint32_t id = sequence.legs[running[s].next];
      if (has_running_source(id) && ahead[id] < 0) continue;
      flows.push_back({&legs[id].route});
      of_flow.push_back(id);
      sequence_of_flow.push_back(s);
    }
    std::vector<double> rate(legs.size(), 0);
    Throughput rates;
    const auto fill = [&] {
      rates = throughput(topology, flows);
      for (std::size_t f = 0; f < flows.size(); ++f) rate[of_flow[f]] = rates.bytes_per_s[f];
    };
    /// How much faster than its source a second half is; rates that differ by rounding are the same.
    const auto closing = [&](std::size_t id) {
      const double mine = rate[id], of_source = rate[legs[id].source];
      if (mine == of_source || std::abs(mine - of_source) <= 1e-9 * of_source) return 0.0;
      return mine - of_source;
    };
    fill();
    for (bool is_settled = false; !is_settled;) {
      is_settled = true;
      for (std::size_t f = 0; f < flows.size(); ++f) {
        const std::uint32_t id = of_flow[f];
        if (!has_running_source(id) || ahead[id] > 0 || closing(id) <= 0) continue;
        flows[f].most_bytes_per_s = rate[legs[id].source];
        is_settled = false;
      }
      if (!is_settled) fill();
    }
    std::vector<double> ends, meets(legs.size(), kNever);
    for (std::size_t f = 0; f < flows.size(); ++f) {
      const std::uint32_t id = of_flow[f];
      ends.push_back(t + std::max(0.0, legs[id].bytes - moved[id]) / rate[id]);
      next = std::min(next, ends[f]);
    }
    for (std::size_t id = 0; id < legs.size(); ++id) {
      if (!has_running_source(id) || rate[legs[id].source] <= 0) continue;
      if (ahead[id] < 0) meets[id] = t - ahead[id] / rate[legs[id].source];
      if (ahead[id] > 0 && closing(id) > 0) meets[id] = t + ahead[id] / closing(id);
      next = std::min(next, meets[id]);
    }
    if (next == kNever) {
      throw Error(Error::Kind::kTransfer,
                  fmt::format("batch: {} copies wait for each other, {} s from its begin", left, t));
    }
    const double passed = next - t;
    for (std::size_t id = 0; id < legs.size(); ++id) {
      if (!has_running_source(id) || rate[legs[id].source] <= 0) continue;
      const double before = ahead[id], after = before - passed * closing(id);
      // An infinite rate ends its leg in this step.
      const bool is_met = meets[id] <= next || !std::isfinite(closing(id));
      ahead[id] = is_met ? 0 : before < 0 ? std::min(0.0, after) : std::max(0.0, after);
    }
    for (std::size_t f = 0; f < flows.size(); ++f) {
      const std::uint32_t id = of_flow[f];
      Leg& leg = schedule->legs[id];
      if (passed > longest[id]) {
        longest[id] = passed;
        leg.bottleneck = rates.bottlenecks[f];
      }
      if (ends[f] > next) {
        moved[id] += passed * rate[id];
        continue;
      }
      leg.end_s = next;
      is_done[id] = true;
      --left;
      Running& run = running[sequence_of_flow[f]];
      const Sequence& sequence = schedule->sequences[sequence_of_flow[f]];
      if (++run.next == sequence.legs.size()) continue;
      Leg& further = schedule->legs[sequence.legs[run.next]];
      further.begin_s = next;
      run.starts_s = next + further.startup_s;
    }
    t = next;
  }
  schedule->makespan_s = 0;
  for (const Sequence& sequence : schedule->sequences) {
    const double copied =
        sequence.legs.empty() ? sequence.begin_s : schedule->legs[sequence.legs.back()].end_s;
    set_kernel_times(streams, schedule, sequence, copied);
  }
  for (const Leg& leg : schedule->legs) {
    StreamTimes& times = schedule->streams[leg.stream];
    if (leg.source == Leg::kNone) times.copy_begin_s = leg.begin_s;
    times.copy_end_s = leg.end_s;
    times.end_s = std::max(times.end_s, leg.end_s);
  }
  for (const StreamTimes& times : schedule->streams)
    schedule->makespan_s = std::max(schedule->makespan_s, times.end_s);
  set_utilisation(topology, schedule);
}

}  // namespace esker::transfer
