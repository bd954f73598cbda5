// Nodes, links and routes.
#include <esker/transfer/batch/topology.hpp>

#include <algorithm>
#include <cmath>
#include <deque>

#include <esker/error.hpp>

#include <fmt/format.h>

namespace esker::transfer {

namespace {

[[noreturn]] void refuse_topology(const std::string& name, const std::string& why) {
  throw Error(Error::Kind::kTransfer, fmt::format("topology '{}': {}", name, why));
}

constexpr std::uint32_t kNoLink = ~0u;

}  // namespace

const char* to_string(Topology::Kind kind) noexcept {
  switch (kind) {
    case Topology::Kind::kMemory:
      return "memory";
    case Topology::Kind::kProcessor:
      return "processor";
    case Topology::Kind::kHub:
      return "hub";
    case Topology::Kind::kSwitch:
      return "switch";
    case Topology::Kind::kDevice:
      return "device";
  }
  return "?";
}

const char* to_string(Topology::Engines engines) noexcept {
  switch (engines) {
    case Topology::Engines::kCaller:
      return "caller";
    case Topology::Engines::kOne:
      return "one";
    case Topology::Engines::kADirection:
      return "a direction";
  }
  return "?";
}

std::uint32_t Topology::add(const std::string& name, Kind kind, Engines engines) {
  for (const Node& node : nodes_) {
    if (node.name == name) refuse_topology(name_, fmt::format("two nodes have the name '{}'", name));
  }
  nodes_.push_back({name, kind, engines});
  leaving_.emplace_back();
  const auto id = static_cast<std::uint32_t>(nodes_.size() - 1);
  if (kind == Kind::kDevice) devices_.push_back(id);
  return id;
}

std::uint32_t Topology::connect(std::uint32_t a, std::uint32_t b, const LinkRate& there,
                                const LinkRate& back) {
  if (a >= nodes_.size() || b >= nodes_.size() || a == b) {
    refuse_topology(name_, fmt::format("a link from node {} to node {}, of {} nodes", a, b, nodes_.size()));
  }
  const auto link = static_cast<std::uint32_t>(links_.size());
  links_.push_back({a, b, {}});
  links_.push_back({b, a, {}});
  leaving_[a].push_back(link);
  leaving_[b].push_back(link + 1);
  set_rate(link, there);
  set_rate(link + 1, back);
  return link;
}

void Topology::set_rate(std::uint32_t link, const LinkRate& rate) {
  const auto is_time = [](double time) { return std::isfinite(time) && time >= 0; };
  const bool has_both = rate.both_bytes_per_s != 0;  // 0: as one way
  if (!(rate.bytes_per_s >= 1) || (has_both && !(rate.both_bytes_per_s >= 1)) || !is_time(rate.startup_s) ||
      !is_time(rate.further_s)) {
    refuse_topology(name_,
                    fmt::format("link {}: {} bytes/s, {} both ways, a startup of {} s and {} s for a further "
                                "copy: bandwidths are at least 1, times finite and not negative",
                                link_name(link), rate.bytes_per_s, rate.both_bytes_per_s, rate.startup_s,
                                rate.further_s));
  }
  links_.at(link).rate = rate;
}

std::uint32_t Topology::find(const std::string& name) const {
  std::string known;
  for (std::uint32_t id = 0; id < nodes_.size(); ++id) {
    if (nodes_[id].name == name) return id;
    known += (known.empty() ? "" : ", ") + nodes_[id].name;
  }
  refuse_topology(name_, fmt::format("there is no node '{}'; it has: {}", name, known));
}

std::uint32_t Topology::device(std::uint32_t index) const {
  if (index >= devices_.size()) {
    refuse_topology(name_, fmt::format("device {} is not there: it has {}", index, devices_.size()));
  }
  return devices_[index];
}

std::uint32_t Topology::host() const {
  for (std::uint32_t id = 0; id < nodes_.size(); ++id) {
    if (nodes_[id].kind == Kind::kMemory) return id;
  }
  refuse_topology(name_, "it has no memory");
}

bool Topology::is_unknown(std::uint32_t link) const {
  const Link& one = links_.at(link);
  return !std::isfinite(one.rate.bytes_per_s) &&
         (nodes_[one.from].kind == Kind::kDevice || nodes_[one.to].kind == Kind::kDevice);
}

std::string Topology::link_name(std::uint32_t link) const {
  return nodes_.at(links_.at(link).from).name + " -> " + nodes_.at(links_[link].to).name;
}

bool Topology::find_route(std::uint32_t from, std::uint32_t to, Route* route) const {
  const bool between_devices = nodes_.at(from).kind == Kind::kDevice && nodes_.at(to).kind == Kind::kDevice;
  const auto leads_on = [&](const Node& node) {
    return between_devices ? node.kind == Kind::kSwitch
                           : node.kind != Kind::kDevice && node.kind != Kind::kMemory;
  };
  std::vector<std::uint32_t> entered(nodes_.size(), kNoLink);
  std::deque<std::uint32_t> next{from};
  while (!next.empty() && entered[to] == kNoLink) {
    const std::uint32_t at = next.front();
    next.pop_front();
    if (at != from && !leads_on(nodes_[at])) continue;
    for (const std::uint32_t link : leaving_[at]) {
      const std::uint32_t end = links_[link].to;
      if (end == from || entered[end] != kNoLink) continue;
      entered[end] = link;
      next.push_back(end);
    }
  }
  if (entered[to] == kNoLink) return false;
  if (route != nullptr) {
    for (std::uint32_t at = to; at != from; at = links_[entered[at]].from) route->push_back(entered[at]);
    std::reverse(route->begin(), route->end());
  }
  return true;
}

Topology::Route Topology::route(std::uint32_t from, std::uint32_t to) const {
  Route found;
  if (from == to || !find_route(from, to, &found)) {
    refuse_topology(name_,
                    fmt::format("no route leads from {} to {}", nodes_.at(from).name, nodes_.at(to).name));
  }
  return found;
}

bool Topology::is_staged(std::uint32_t from, std::uint32_t to) const {
  return nodes_.at(from).kind == Kind::kDevice && nodes_.at(to).kind == Kind::kDevice &&
         !find_route(from, to, nullptr);
}

}  // namespace esker::transfer
