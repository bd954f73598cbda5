// Table 2 of Verner et al.: predicted against measured, on batches with other sizes than those of the fit.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <esker/transfer.hpp>

#include "../harness/measure.hpp"
#include "bench.hpp"

namespace esker::bench {

namespace {

using namespace transfer;

/// Takes a time in proportion to `rounds`, and leaves the copied bytes as they are.
struct Mix {
  std::uint32_t* sums;
  std::uint32_t rounds;
  ESKER_HD void operator()(Lane lane) const {
    std::uint32_t x = static_cast<std::uint32_t>(lane.global_id()) | 1;
    for (std::uint32_t i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u;
    sums[lane.global_id()] = x;
  }
};
constexpr std::uint64_t kLanes = 1 << 14;

/// Memory of a device for one stream of each direction.
struct End {
  End(const Device& device, std::size_t bytes, std::uint32_t seed)
      : there{device.memory<std::byte>(bytes)},
        back{device.memory<std::byte>(bytes)},
        from{device.pinned<std::byte>(bytes)},
        to{device.pinned<std::byte>(bytes)},
        sums{device.memory<std::uint32_t>(kLanes)} {
    fill(device, from.data(), bytes, 2 * seed);
    fill(device, back.data(), bytes, 2 * seed + 1);
  }
  DeviceArray<std::byte> there, back;
  PinnedArray<std::byte> from, to;
  DeviceArray<std::uint32_t> sums;
};

struct Case {
  std::string name, kind;
  Batch batch;
};

double median(const std::vector<double>& values) { return summarise(values).median; }

/// Seconds of one case, and a value a turn of how its batches took beside what was predicted for them.
struct Found {
  std::vector<double> measured, predicted, by_host, alone, cold;
  std::vector<std::vector<double>> ends, predicted_ends;  // a stream
  std::vector<double> ratios, ratios_to_first;            // by this turn's links, by those measured at first

  void add_turn(const Timeline& by_turn, const Timeline& by_first, std::span<const BatchHandle> handles) {
    ends.resize(by_turn.streams.size());
    predicted_ends.resize(by_turn.streams.size());
    std::vector<double> makespans;
    for (const BatchHandle& handle : handles) {
      const BatchReport& report = handle.synchronize();
      makespans.push_back(report.makespan_s);
      for (std::size_t s = 0; s < ends.size(); ++s) ends[s].push_back(report.measured[s].end_s);
    }
    for (std::size_t s = 0; s < ends.size(); ++s) predicted_ends[s].push_back(by_turn.streams[s].end_s);
    measured.insert(measured.end(), makespans.begin(), makespans.end());
    predicted.push_back(by_turn.makespan_s);
    ratios.push_back(median(makespans) / by_turn.makespan_s);
    ratios_to_first.push_back(median(makespans) / by_first.makespan_s);
  }
};

double error_percent(const std::vector<double>& ratios) { return 100 * std::fabs(median(ratios) - 1); }

}  // namespace

nlohmann::json take_prediction(const TransferBench& bench) {
  std::vector<std::unique_ptr<End>> ends;
  for (const Device& device : bench.devices) {
    ends.push_back(std::make_unique<End>(device, bench.most_bytes, static_cast<std::uint32_t>(ends.size())));
  }
  const auto part = [&](double of_most) {
    return std::max<std::size_t>(
        static_cast<std::size_t>(of_most * static_cast<double>(bench.most_bytes)) / 64 * 64, 64);
  };
  const auto to_device = [&](std::size_t d, std::size_t bytes, std::size_t at = 0) {
    CommandStream s;
    s.to = static_cast<std::int32_t>(d);
    s.destination = ends[d]->there.data() + at;
    s.source = ends[d]->from.data() + at;
    s.bytes = bytes;
    return s;
  };
  const auto to_host = [&](std::size_t d, std::size_t bytes, std::size_t at = 0) {
    CommandStream s;
    s.from = static_cast<std::int32_t>(d);
    s.destination = ends[d]->to.data() + at;
    s.source = ends[d]->back.data() + at;
    s.bytes = bytes;
    return s;
  };
  // Rounds for about 2 ms, and what they take.
  const auto launch = [&](std::size_t d, std::uint32_t rounds) {
    return [sums = ends[d]->sums.data(), rounds](const Device& device, const Stream& stream) {
      device.launch(kLanes, Mix{sums, rounds}, stream);
    };
  };
  const auto time_of = [&](std::size_t d, std::uint32_t rounds) {
    std::vector<double> times;
    const Stream stream = bench.devices[d].stream();
    const Event begin = bench.devices[d].event(), end = bench.devices[d].event();
    for (int i = 0; i < 9; ++i) {
      stream.record(begin);
      launch(d, rounds)(bench.devices[d], stream);
      stream.record(end);
      end.synchronize();
      times.push_back(std::chrono::duration<double>(end.elapsed_since(begin)).count());
    }
    return median(times);
  };
  std::vector<std::uint32_t> rounds;
  std::vector<std::chrono::nanoseconds> kernel_times;
  for (std::size_t d = 0; d < ends.size(); ++d) {
    constexpr std::uint32_t kProbe = 20'000;
    rounds.push_back(
        static_cast<std::uint32_t>(std::clamp(kProbe * 2e-3 / std::max(1e-9, time_of(d, kProbe)), 1.0, 1e9)));
    kernel_times.emplace_back(static_cast<std::int64_t>(time_of(d, rounds[d]) * 1e9) + 1);
  }
  const auto with_kernel = [&](CommandStream stream) {
    const auto d = static_cast<std::size_t>(stream.to);
    stream.kernel = launch(d, rounds[d]);
    stream.kernel_time = kernel_times[d];
    return stream;
  };

  std::vector<Case> cases;
  for (const double size : {0.003, 0.011, 0.047, 0.19, 0.7, 1.0}) {
    cases.push_back({fmt::format("{} B to device", part(size)), "one way", {to_device(0, part(size))}});
    cases.push_back({fmt::format("{} B to host", part(size)), "one way", {to_host(0, part(size))}});
  }
  for (const auto& [there, back] : {std::pair{1.0, 1.0}, {0.6, 0.15}, {0.09, 0.9}, {0.05, 0.06}})
    cases.push_back({fmt::format("{} B there, {} B back", part(there), part(back)),
                     "both ways",
                     {to_device(0, part(there)), to_host(0, part(back))}});
  cases.push_back({"copy and kernel", "one way", {with_kernel(to_device(0, part(0.7)))}});
  cases.push_back({"three merged with kernels",
                   "one way",
                   {with_kernel(to_device(0, part(0.1))), with_kernel(to_device(0, part(0.03), part(0.2))),
                    with_kernel(to_device(0, part(0.4), part(0.3)))}});
  cases.push_back({"copy and kernel, one back",
                   "both ways",
                   {with_kernel(to_device(0, part(0.5))), to_host(0, part(0.8))}});
  if (ends.size() > 1) {
    Batch experiment_1, experiment_2, everything;
    double size = 1;
    for (std::size_t d = 0; d < ends.size(); ++d, size = std::max(size / 2, 1.0 / 16)) {
      experiment_1.push_back(with_kernel(to_device(d, part(size))));
      experiment_2.push_back(to_host(d, part(size)));
      everything.push_back(with_kernel(to_device(d, part(size))));
      everything.push_back(to_host(d, part(1.1 / 16 / size)));
    }
    cases.push_back({"Table 2, H2D with kernels", "one way", experiment_1});
    cases.push_back({"Table 2, D2H", "one way", experiment_2});
    cases.push_back({"all devices, both ways", "both ways", everything});
    // Between devices: into what a copy from the host fills in other batches.
    const auto between = [&](std::size_t from, std::size_t to, std::size_t bytes) {
      CommandStream s = to_host(from, bytes);
      s.to = static_cast<std::int32_t>(to);
      s.destination = ends[to]->there.data();
      return s;
    };
    cases.push_back({"device 0 to device 1", "one way", {between(0, 1, part(0.7))}});
    cases.push_back(
        {"device 0 to device 1 and back", "both ways", {between(0, 1, part(0.7)), between(1, 0, part(0.6))}});
    Batch around;
    for (std::size_t d = 0; d < ends.size(); ++d)
      around.push_back(between(d, (d + 1) % ends.size(), part(1)));
    cases.push_back({"each device to the next", "both ways", around});
  }

  const Topology topology = machine_topology(bench.devices);
  std::vector<LinkProfile> profiles = {measure_links(bench.devices)};
  BatchQueue first(bench.devices, calibrated(topology, profiles.front()));
  for (const Case& one : cases) {
    std::vector<PlacedCopy> copies;
    for (const CommandStream& s : one.batch) {
      const auto device = static_cast<std::size_t>(s.from == kHost ? s.to : s.from);
      copies.push_back({bench.devices[device], {s.destination, s.source, s.bytes}});
    }
    verify(
        copies, [&] { first.run(one.batch); }, one.name);
  }
  // All take turns, a few runs a turn, so that whatever else the machine does meets each alike. What links
  // carry changes within a second, with what others move through the host's memory: each turn measures them
  // first, and what the first measurement alone would have predicted is apart. So is the first run of a turn,
  // which comes after another batch and finds engines and caches cold, and those that come to an empty queue.
  // The others wait in the queue, of which the host's clock is a second witness.
  constexpr std::uint32_t kRuns = 4;
  std::vector<Found> found(cases.size());
  for (std::uint32_t turn = 0; turn < bench.repeats; ++turn) {
    profiles.push_back(measure_links(bench.devices));
    BatchQueue queue(bench.devices, calibrated(topology, profiles.back()));
    for (std::size_t c = 0; c < cases.size(); ++c) {
      Found& of = found[c];
      const Batch& batch = cases[c].batch;
      const Timeline by_turn = queue.predict(batch), by_first = first.predict(batch);
      of.cold.push_back(queue.run(batch).makespan_s);
      for (std::uint32_t i = 0; i < kRuns; ++i) of.alone.push_back(queue.run(batch).makespan_s);
      std::vector<BatchHandle> handles;
      for (std::uint32_t i = 0; i <= kRuns; ++i) handles.push_back(queue.run_async(batch));
      handles.front().synchronize();
      const auto begin = std::chrono::steady_clock::now();
      handles.back().synchronize();
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
      of.by_host.push_back(time.count() / kRuns);
      of.add_turn(by_turn, by_first, std::span(handles).subspan(1));
    }
  }

  nlohmann::json all = {{"profiles", nlohmann::json::array()}, {"cases", nlohmann::json::array()}};
  for (const LinkProfile& profile : profiles)
    all["profiles"].push_back(nlohmann::json::parse(to_json(profile)));
  double worst[2] = {0, 0}, worst_by_first[2] = {0, 0};
  fmt::print("{:34} {:10} {:>12} {:>12} {:>8} {:>10} {:>12} {:>12} {:>12}  streams, predicted/measured ms\n",
             "batch", "", "predicted ms", "measured ms", "error %", "by first %", "a batch ms", "alone ms",
             "cold ms");
  for (std::size_t c = 0; c < cases.size(); ++c) {
    const Case& one = cases[c];
    const Found& of = found[c];
    const bool is_both = one.kind == "both ways";
    const double error = error_percent(of.ratios), by_first = error_percent(of.ratios_to_first);
    worst[is_both] = std::max(worst[is_both], error);
    worst_by_first[is_both] = std::max(worst_by_first[is_both], by_first);
    std::string streams;
    nlohmann::json per_stream = nlohmann::json::array();
    for (std::size_t s = 0; s < one.batch.size(); ++s) {
      const double predicted = median(of.predicted_ends[s]), measured = median(of.ends[s]);
      streams += fmt::format(" {:.3f}/{:.3f}", predicted * 1e3, measured * 1e3);
      per_stream.push_back({{"predicted_s", predicted}, {"measured_s", measured}});
    }
    fmt::print("{:34} {:10} {:12.4f} {:12.4f} {:8.2f} {:10.2f} {:12.4f} {:12.4f} {:12.4f} {}\n", one.name,
               one.kind, median(of.predicted) * 1e3, median(of.measured) * 1e3, error, by_first,
               median(of.by_host) * 1e3, median(of.alone) * 1e3, median(of.cold) * 1e3, streams);
    std::fflush(stdout);
    all["cases"].push_back({{"batch", one.name},
                            {"kind", one.kind},
                            {"predicted_s", median(of.predicted)},
                            {"measured_s", median(of.measured)},
                            {"error_percent", error},
                            {"error_by_first_percent", by_first},
                            {"measured_over_predicted", of.ratios},
                            {"a_batch_by_host_s", median(of.by_host)},
                            {"alone_s", median(of.alone)},
                            {"cold_s", median(of.cold)},
                            {"streams", per_stream}});
  }
  fmt::print(
      "worst error: one way {:.2f} %, both ways {:.2f} %; by the first measurement of the links "
      "{:.2f} %, {:.2f} %\n",
      worst[0], worst[1], worst_by_first[0], worst_by_first[1]);
  all["worst_one_way_percent"] = worst[0];
  all["worst_both_ways_percent"] = worst[1];
  all["worst_one_way_by_first_percent"] = worst_by_first[0];
  all["worst_both_ways_by_first_percent"] = worst_by_first[1];
  return all;
}

}  // namespace esker::bench
