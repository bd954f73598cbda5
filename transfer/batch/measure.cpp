// Startup and bandwidth of this machine's links.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include <esker/transfer/batch/machine.hpp>

namespace esker::transfer {

namespace {

enum class Way : std::uint8_t { kThere, kBack };

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

/// A device, memory on both sides, and a stream a direction.
class End {
 public:
  End(const Device& device, std::size_t bytes)
      : device_{device},
        there_{device.memory<std::byte>(bytes, {"a place for measured copies", false})},
        back_{device.memory<std::byte>(bytes, {"a place for measured copies"})},
        from_{device.pinned<std::byte>(bytes, {"a source of measured copies"})},
        to_{device.pinned<std::byte>(bytes, {"a place for measured copies", false})},
        streams_{device.stream(), device.stream()},
        begin_{device.event()},
        ends_{device.event(), device.event()} {}

  void mark_begin() { streams_[0].record(begin_); }
  void start(Way way, std::size_t bytes, std::uint32_t copies = 1) {
    const auto w = static_cast<std::size_t>(way);
    for (std::uint32_t i = 0; i < copies; ++i) {
      device_.copy_async(way == Way::kThere ? there_.data() : to_.data(),
                         way == Way::kThere ? from_.data() : back_.data(), bytes, streams_[w]);
    }
    streams_[w].record(ends_[w]);
  }
  /// From mark_begin() to the end of what start() has started.
  double wait(Way way) {
    const auto w = static_cast<std::size_t>(way);
    begin_.synchronize();  // it is on the stream of one direction
    ends_[w].synchronize();
    return seconds(ends_[w].elapsed_since(begin_));
  }

 private:
  const Device& device_;
  DeviceArray<std::byte> there_, back_;
  PinnedArray<std::byte> from_, to_;
  Stream streams_[2];
  Event begin_, ends_[2];
};

/// The middle one of each of several times, measured together.
std::vector<double> medians(std::uint32_t repeats, const std::function<std::vector<double>()>& once) {
  std::vector<std::vector<double>> all;
  (void)once();  // the first touches memory
  for (std::uint32_t i = 0; i < std::max(1u, repeats); ++i) all.push_back(once());
  std::vector<double> result(all[0].size());
  for (std::size_t value = 0; value < result.size(); ++value) {
    std::vector<double> column;
    for (const auto& row : all) column.push_back(row[value]);
    std::nth_element(column.begin(), column.begin() + static_cast<std::ptrdiff_t>(column.size() / 2),
                     column.end());
    result[value] = column[column.size() / 2];
  }
  return result;
}

/// startup + bytes / rate, by least squares of the relative error.
LinkRate fit(const std::vector<std::pair<double, double>>& bytes_and_seconds) {
  double s1 = 0, sx = 0, sxx = 0, sy = 0, sxy = 0;
  for (const auto& [bytes, time] : bytes_and_seconds) {
    const double weight = 1 / (time * time);
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

LinkRate measure_way(End& end, Way way, std::size_t most, std::uint32_t repeats) {
  std::vector<std::pair<double, double>> points;
  for (std::size_t bytes = std::max<std::size_t>(most / 256, 4096); bytes <= most; bytes *= 4) {
    const double time = medians(repeats, [&] {
      end.mark_begin();
      end.start(way, bytes);
      return std::vector<double>{end.wait(way)};
    })[0];
    points.emplace_back(static_cast<double>(bytes), std::max(time, 1e-9));
  }
  LinkRate rate = fit(points);
  constexpr std::uint32_t kCopies = 8;
  const std::size_t bytes = std::max<std::size_t>(most / 64, 4096);
  const std::vector<double> times = medians(repeats, [&] {
    end.mark_begin();
    end.start(way, bytes, kCopies);
    return std::vector<double>{end.wait(way)};
  });
  rate.further_s =
      std::max(0.0, (times[0] - rate.startup_s - kCopies * static_cast<double>(bytes) / rate.bytes_per_s) /
                        (kCopies - 1));
  return rate;
}

/// Both directions of a device at once: what each carries until the first has ended.
void measure_both(End& end, std::size_t bytes, std::uint32_t repeats, LinkRate* there, LinkRate* back) {
  const std::vector<double> times = medians(repeats, [&] {
    end.mark_begin();
    end.start(Way::kThere, bytes);
    end.start(Way::kBack, bytes);
    return std::vector<double>{end.wait(Way::kThere), end.wait(Way::kBack)};
  });
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

/// The rate of each direction, in all, with these devices copying.
std::vector<double> measure_set(const std::vector<End*>& ends, bool there, bool back, std::size_t bytes,
                                std::uint32_t repeats, const std::vector<LinkRate>& rates_there,
                                const std::vector<LinkRate>& rates_back) {
  return medians(repeats, [&] {
    for (End* const end : ends) end->mark_begin();
    for (End* const end : ends) {
      if (there) end->start(Way::kThere, bytes);
      if (back) end->start(Way::kBack, bytes);
    }
    std::vector<double> sums(2, 0);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const auto n = static_cast<double>(bytes);
      if (there) sums[0] += n / std::max(1e-9, ends[i]->wait(Way::kThere) - rates_there[i].startup_s);
      if (back) sums[1] += n / std::max(1e-9, ends[i]->wait(Way::kBack) - rates_back[i].startup_s);
    }
    return sums;
  });
}

}  // namespace

LinkProfile measure_links(std::span<const Device> devices, const MeasureOptions& options) {
  Topology topology = machine_topology(devices);
  LinkProfile profile;
  profile.machine = topology.name();
  std::vector<End> ends;
  std::vector<std::size_t> most(devices.size());
  ends.reserve(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const bool is_simulated = devices[i].backend() == Backend::kSimulated;
    most[i] = options.most_bytes != 0 ? options.most_bytes : std::size_t{1} << (is_simulated ? 22 : 26);
    ends.emplace_back(devices[i], most[i]);
  }
  std::vector<LinkRate> there(devices.size()), back(devices.size());
  std::map<std::uint32_t, std::vector<std::size_t>> below;  // link that leads down: devices
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::uint32_t node = topology.device(static_cast<std::uint32_t>(i));
    const Topology::Route route = topology.route(topology.host(), node);
    there[i] = measure_way(ends[i], Way::kThere, most[i], options.repeats);
    back[i] = measure_way(ends[i], Way::kBack, most[i], options.repeats);
    if (topology.nodes()[node].engines != Topology::Engines::kCaller)
      measure_both(ends[i], most[i], options.repeats, &there[i], &back[i]);
    for (std::size_t hop = 0; hop + 1 < route.size(); ++hop) below[route[hop]].push_back(i);
    const std::string above = topology.nodes()[topology.links()[route.back()].from].name;
    const std::string name = topology.nodes()[node].name;
    profile.links.push_back({above, name, there[i]});
    profile.links.push_back({name, above, back[i]});
  }
  std::map<std::vector<std::size_t>, std::pair<LinkRate, LinkRate>> of_set;
  for (const auto& [link, set] : below) {
    if (set.size() < 2 || devices[set[0]].backend() == Backend::kCpu) continue;
    if (of_set.count(set) == 0) {
      std::vector<End*> together;
      std::vector<LinkRate> rates_there, rates_back;
      for (const std::size_t i : set) {
        together.push_back(&ends[i]);
        rates_there.push_back(there[i]);
        rates_back.push_back(back[i]);
      }
      const auto measured = [&](bool is_there, bool is_back) {
        return measure_set(together, is_there, is_back, most[set[0]], options.repeats, rates_there,
                           rates_back);
      };
      auto& [down, up] = of_set[set];
      down.bytes_per_s = measured(true, false)[0];
      up.bytes_per_s = measured(false, true)[1];
      const std::vector<double> both = measured(true, true);
      down.both_bytes_per_s = std::min(down.bytes_per_s, both[0]);
      up.both_bytes_per_s = std::min(up.bytes_per_s, both[1]);
    }
    const Topology::Link& one = topology.links()[link];
    const std::string from = topology.nodes()[one.from].name, to = topology.nodes()[one.to].name;
    profile.links.push_back({from, to, of_set[set].first});
    profile.links.push_back({to, from, of_set[set].second});
  }
  return profile;
}

}  // namespace esker::transfer
