// Startup and bandwidth of this machine's links.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <esker/error.hpp>
#include <esker/transfer/batch/batch.hpp>
#include <esker/transfer/batch/execution.hpp>
#include <esker/transfer/batch/machine.hpp>

namespace esker::transfer {

namespace {

/// Memory of a device and of the host, for copies that are measured.
struct End {
  End(const Device& device, std::size_t bytes)
      : there{device.memory<std::byte>(bytes, {"a place for measured copies", false})},
        back{device.memory<std::byte>(bytes, {"a source of measured copies"})},
        from{device.pinned<std::byte>(bytes, {"a source of measured copies"})},
        to{device.pinned<std::byte>(bytes, {"a place for measured copies", false})} {}
  DeviceArray<std::byte> there, back;
  PinnedArray<std::byte> from, to;
};

/// Runs copies as batches of a queue are run. On a topology without bandwidths every stream starts at once.
class Probe {
 public:
  Probe(std::span<const Device> devices, const Topology& topology, std::size_t most_bytes)
      : devices_(devices.begin(), devices.end()),
        topology_{topology},
        before_bytes_{most_bytes / 256},
        execution_{devices_, 0} {
    for (const Device& device : devices) ends_.emplace_back(device, most_bytes);
  }
  /// Devices by their numbers, or kHost for memory of the host beside the other end.
  CommandStream copy(std::int32_t from, std::int32_t to, std::size_t bytes) const {
    CommandStream stream;
    stream.from = from;
    stream.to = to;
    stream.destination = to == kHost ? end(from).to.data() : end(to).there.data();
    stream.source = from == kHost ? end(to).from.data() : end(from).back.data();
    stream.bytes = bytes;
    return stream;
  }
  /// When each copy ends, behind the same batch once before: that finds caches as another copy has left them.
  /// The one before is long enough for the host to make the calls of the second.
  std::vector<double> run(const Batch& batch) {
    BatchReport report;
    Batch before = batch;
    for (CommandStream& copy : before) copy.bytes = std::max(copy.bytes, before_bytes_);
    const auto schedule_of = [&](const Batch& b) { return align_ends(topology_, model_of(topology_, b)); };
    const Timeline schedule_before = schedule_of(before), schedule = schedule_of(batch);
    BatchRun first(execution_, before, schedule_before), second(execution_, batch, schedule);
    first.start();
    second.start_behind(first);
    first.finish(&report);
    second.start();
    second.finish(&report);
    std::vector<double> ends;
    ends.reserve(batch.size());
    for (const StreamTimes& times : report.measured) ends.push_back(times.copy_end_s);
    return ends;
  }

 private:
  const End& end(std::int32_t device) const { return ends_[static_cast<std::size_t>(device)]; }

  const std::vector<Device> devices_;
  const Topology& topology_;
  const std::size_t before_bytes_;
  BatchExecution execution_;
  std::vector<End> ends_;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// startup + bytes / rate, by least squares of the error over what is expected of it: a fraction of a
/// microsecond, by which a copy is off the line, and some thousandths, by which links change.
LinkRate fit(const std::vector<std::pair<double, double>>& bytes_and_seconds) {
  double s1 = 0, sx = 0, sxx = 0, sy = 0, sxy = 0;
  for (const auto& [bytes, time] : bytes_and_seconds) {
    const double expected = std::hypot(0.2e-6, 3e-3 * time), weight = 1 / (expected * expected);
    s1 += weight;
    sx += weight * bytes;
    sxx += weight * bytes * bytes;
    sy += weight * time;
    sxy += weight * bytes * time;
  }
  const double slope = (s1 * sxy - sx * sy) / (s1 * sxx - sx * sx);
  LinkRate rate;
  rate.startup_s = std::max(0.0, (sy - slope * sx) / s1);
  rate.bytes_per_s = slope > 0 ? 1 / slope : bytes_and_seconds.back().first / bytes_and_seconds.back().second;
  return rate;
}

struct Way {
  std::int32_t from, to;
};

/// What each of two opposite ways carries while both are in use: until the first has ended.
void fit_both(const std::vector<double>& times_there, const std::vector<double>& times_back,
              std::size_t bytes, LinkRate* there, LinkRate* back) {
  const double times[] = {median(times_there), median(times_back)};
  const bool is_there_first = times[0] <= times[1];
  LinkRate &first = is_there_first ? *there : *back, &last = is_there_first ? *back : *there;
  const double overlap = std::min(times[0], times[1]) - std::max(there->startup_s, back->startup_s);
  const double alone = std::fabs(times[0] - times[1]);
  const auto n = static_cast<double>(bytes);
  if (overlap <= 0) return;
  first.both_bytes_per_s = std::min(first.bytes_per_s, n / overlap);
  // Where times are noise, it would come to nothing.
  last.both_bytes_per_s = std::min(last.bytes_per_s, std::max(n - alone * last.bytes_per_s, n / 4) / overlap);
}

constexpr std::size_t kLeastBytes = std::size_t{64} << 10;  // some sizes, for a line

/// Each way alone, and each with the opposite one, which follows it. All sizes of all ways take turns, so
/// that whatever else the machine does meets each alike.
std::vector<LinkRate> measure_ways(Probe& probe, std::span<const Way> ways, std::size_t most,
                                   std::uint32_t repeats) {
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = std::max<std::size_t>(most / 1024, 4096); bytes <= most; bytes *= 2)
    sizes.push_back(bytes);
  constexpr std::size_t kCopies = 8;
  const std::size_t bytes_of_each = std::max<std::size_t>(most / 64, 4096);
  struct Times {
    std::vector<std::vector<double>> of_size;
    std::vector<double> of_several, beside_opposite;
  };
  std::vector<Times> times(ways.size(), {std::vector<std::vector<double>>(sizes.size()), {}, {}});
  for (std::uint32_t round = 0; round <= std::max(1u, repeats); ++round) {
    for (std::size_t w = 0; w < ways.size(); ++w) {
      const auto copy = [&](std::size_t way, std::size_t bytes) {
        return probe.copy(ways[way].from, ways[way].to, bytes);
      };
      const auto add = [&](double time, std::vector<double>& to) {
        if (round > 0) to.push_back(time);  // the first touches memory
      };
      for (std::size_t s = 0; s < sizes.size(); ++s)
        add(probe.run({copy(w, sizes[s])}).back(), times[w].of_size[s]);
      add(probe.run(Batch(kCopies, copy(w, bytes_of_each))).back(), times[w].of_several);
      if (w % 2 != 0) continue;
      const std::vector<double> ends = probe.run({copy(w, most), copy(w + 1, most)});
      for (std::size_t i = 0; i < 2; ++i) add(ends[i], times[w + i].beside_opposite);
    }
  }
  std::vector<LinkRate> rates;
  for (const Times& of : times) {
    std::vector<std::pair<double, double>> points;
    for (std::size_t s = 0; s < sizes.size(); ++s)
      points.emplace_back(static_cast<double>(sizes[s]), std::max(median(of.of_size[s]), 1e-9));
    LinkRate rate = fit(points);
    const double first = rate.startup_s + kCopies * static_cast<double>(bytes_of_each) / rate.bytes_per_s;
    rate.further_s = std::max(0.0, (median(of.of_several) - first) / (kCopies - 1));
    rates.push_back(rate);
  }
  for (std::size_t w = 0; w < ways.size(); w += 2)
    fit_both(times[w].beside_opposite, times[w + 1].beside_opposite, most, &rates[w], &rates[w + 1]);
  return rates;
}

/// What the link above these devices carries with all of them copying, down and up: each alone, and both.
std::pair<LinkRate, LinkRate> measure_set(Probe& probe, const std::vector<std::size_t>& set,
                                          std::size_t bytes, std::uint32_t repeats,
                                          const std::vector<LinkRate>& rates_there,
                                          const std::vector<LinkRate>& rates_back) {
  std::vector<double> down, up, down_of_both, up_of_both;
  const auto measure = [&](std::vector<double>* there, std::vector<double>* back) {
    Batch batch;
    for (const std::size_t i : set) {
      const auto device = static_cast<std::int32_t>(i);
      if (there != nullptr) batch.push_back(probe.copy(kHost, device, bytes));
      if (back != nullptr) batch.push_back(probe.copy(device, kHost, bytes));
    }
    const std::vector<double> ends = probe.run(batch);
    double sums[] = {0, 0};
    for (std::size_t s = 0; s < ends.size(); ++s) {
      const bool is_there = batch[s].to != kHost;
      const auto device = static_cast<std::size_t>(is_there ? batch[s].to : batch[s].from);
      const double startup = (is_there ? rates_there : rates_back)[device].startup_s;
      sums[is_there ? 0 : 1] += static_cast<double>(bytes) / std::max(1e-9, ends[s] - startup);
    }
    if (there != nullptr) there->push_back(sums[0]);
    if (back != nullptr) back->push_back(sums[1]);
  };
  for (std::uint32_t round = 0; round < std::max(1u, repeats); ++round) {
    measure(&down, nullptr);
    measure(nullptr, &up);
    measure(&down_of_both, &up_of_both);
  }
  const auto rate = [](const std::vector<double>& alone, const std::vector<double>& both) {
    const double bytes_per_s = median(alone);
    return LinkRate{bytes_per_s, std::min(bytes_per_s, median(both))};
  };
  return {rate(down, down_of_both), rate(up, up_of_both)};
}

/// The links between devices and a switch that leads to nothing else, each by copies to and from the next
/// one.
void measure_peers(Probe& probe, const Topology& topology, std::size_t most, std::uint32_t repeats,
                   LinkProfile* profile) {
  const auto& nodes = topology.nodes();
  std::map<std::uint32_t, std::vector<std::int32_t>> below;  // switch: devices
  std::set<std::uint32_t> leads_up;
  for (const Topology::Link& link : topology.links()) {
    if (nodes[link.from].kind != Topology::Kind::kSwitch) continue;
    const auto& all = topology.devices();
    const auto device = std::find(all.begin(), all.end(), link.to);
    if (device != all.end()) {
      below[link.from].push_back(static_cast<std::int32_t>(device - all.begin()));
    } else {
      leads_up.insert(link.from);
    }
  }
  for (const auto& [node, set] : below) {
    if (leads_up.count(node) != 0) continue;
    std::vector<Way> ways;
    for (std::size_t i = 0; i < set.size(); ++i) {
      const std::int32_t next = set[(i + 1) % set.size()];
      ways.push_back({set[i], next});
      ways.push_back({next, set[i]});
    }
    const std::vector<LinkRate> rates = measure_ways(probe, ways, most, repeats);
    for (std::size_t i = 0; i < set.size(); ++i) {
      const std::string name = nodes[topology.device(static_cast<std::uint32_t>(set[i]))].name;
      profile->links.push_back({name, nodes[node].name, rates[2 * i]});
      profile->links.push_back({nodes[node].name, name, rates[2 * i + 1]});
    }
  }
}

}  // namespace

LinkProfile measure_links(std::span<const Device> devices, const MeasureOptions& options) {
  Topology topology = machine_topology(devices);
  LinkProfile profile;
  profile.machine = topology.name();
  const bool is_simulated = !devices.empty() && devices[0].backend() == Backend::kSimulated;
  const std::size_t most =
      options.most_bytes != 0 ? options.most_bytes : std::size_t{1} << (is_simulated ? 22 : 26);
  if (most < kLeastBytes)
    throw Error(Error::Kind::kTransfer,
                fmt::format("measure_links: largest copies of {} bytes: at least {}", most, kLeastBytes));
  Probe probe(devices, topology, most);
  std::vector<LinkRate> there(devices.size()), back(devices.size());
  std::map<std::uint32_t, std::vector<std::size_t>> below;  // link that leads down: devices
  std::vector<Way> ways;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(devices.size()); ++i) {
    ways.push_back({kHost, i});
    ways.push_back({i, kHost});
  }
  const std::vector<LinkRate> alone = measure_ways(probe, ways, most, options.repeats);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::uint32_t node = topology.device(static_cast<std::uint32_t>(i));
    const Topology::Route route = topology.route(topology.host(), node);
    there[i] = alone[2 * i];
    back[i] = alone[2 * i + 1];
    // Where the caller copies, nothing is at the same time.
    if (topology.nodes()[node].engines == Topology::Engines::kCaller)
      there[i].both_bytes_per_s = back[i].both_bytes_per_s = 0;
    for (std::size_t hop = 0; hop + 1 < route.size(); ++hop) below[route[hop]].push_back(i);
    const std::string above = topology.nodes()[topology.links()[route.back()].from].name;
    const std::string name = topology.nodes()[node].name;
    profile.links.push_back({above, name, there[i]});
    profile.links.push_back({name, above, back[i]});
  }
  std::map<std::vector<std::size_t>, std::pair<LinkRate, LinkRate>> of_set;
  for (const auto& entry : below) {
    const std::uint32_t link = entry.first;
    const std::vector<std::size_t>& set = entry.second;
    if (set.size() < 2 || devices[set[0]].backend() == Backend::kCpu) continue;
    if (of_set.count(set) == 0) of_set[set] = measure_set(probe, set, most, options.repeats, there, back);
    const Topology::Link& one = topology.links()[link];
    const std::string from = topology.nodes()[one.from].name, to = topology.nodes()[one.to].name;
    profile.links.push_back({from, to, of_set[set].first});
    profile.links.push_back({to, from, of_set[set].second});
  }
  measure_peers(probe, topology, most, options.repeats, &profile);
  return profile;
}

}  // namespace esker::transfer
