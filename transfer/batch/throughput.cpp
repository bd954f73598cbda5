// Progressive filling.
#include <esker/transfer/batch/throughput.hpp>

#include <algorithm>
#include <cmath>

namespace esker::transfer {

namespace {

Throughput fill(std::span<const Flow> flows, const std::vector<double>& bandwidth) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  Throughput result;
  result.bytes_per_s.assign(flows.size(), 0);
  result.bottlenecks.assign(flows.size(), Throughput::kNone);
  std::vector<bool> is_full(flows.size(), false);
  std::vector<double> left = bandwidth;
  double level = 0;
  for (std::size_t rising = flows.size(); rising > 0;) {
    std::vector<std::uint32_t> users(left.size(), 0);
    double step = kInfinite;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (is_full[f]) continue;
      step = std::min(step, flows[f].most_bytes_per_s - level);
      for (const std::uint32_t link : *flows[f].route) ++users[link];
    }
    for (std::size_t link = 0; link < left.size(); ++link) {
      if (users[link] > 0) step = std::min(step, left[link] / users[link]);
    }
    level += step;
    for (std::size_t link = 0; link < left.size(); ++link) {
      if (users[link] > 0 && std::isfinite(left[link])) left[link] -= step * users[link];
    }
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (is_full[f]) continue;
      is_full[f] = level >= flows[f].most_bytes_per_s || level == kInfinite;
      for (const std::uint32_t link : *flows[f].route) {
        // Rounding leaves a little in a link that is full.
        if (is_full[f] || !std::isfinite(left[link]) || left[link] > 1e-9 * bandwidth[link]) continue;
        is_full[f] = true;
        result.bottlenecks[f] = link;
      }
      if (!is_full[f]) continue;
      result.bytes_per_s[f] = level;
      --rising;
    }
  }
  return result;
}

}  // namespace

Throughput throughput(const Topology& topology, std::span<const Flow> flows) {
  const auto& links = topology.links();
  std::vector<double> bandwidth(links.size());
  std::vector<bool> is_used(links.size(), false);
  for (const Flow& flow : flows) {
    for (const std::uint32_t link : *flow.route) is_used[link] = true;
  }
  bool has_both = false;
  for (std::uint32_t link = 0; link < links.size(); ++link) {
    const LinkRate& rate = links[link].rate;
    const bool is_both = is_used[link] && is_used[Topology::opposite(link)];
    bandwidth[link] = is_both ? rate.both() : rate.bytes_per_s;
    has_both = has_both || (is_both && rate.both() < rate.bytes_per_s);
  }
  Throughput result = fill(flows, bandwidth);
  if (!has_both) return result;
  std::vector<double> carried(links.size(), 0);
  for (std::size_t f = 0; f < flows.size(); ++f) {
    for (const std::uint32_t link : *flows[f].route) carried[link] += result.bytes_per_s[f];
  }
  bool has_room = false;
  for (std::uint32_t link = 0; link < links.size(); ++link) {
    const std::uint32_t opposite = Topology::opposite(link);
    if (!is_used[link] || !is_used[opposite]) continue;
    const double alone = links[link].rate.bytes_per_s, both = links[link].rate.both();
    const double use = carried[opposite] / links[opposite].rate.both();
    if (!(both < alone) || !(use < 1 - 1e-9) || !std::isfinite(alone)) continue;
    bandwidth[link] = alone - (alone - both) * use;
    has_room = true;
  }
  return has_room ? fill(flows, bandwidth) : result;
}

}  // namespace esker::transfer
