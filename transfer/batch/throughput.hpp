// How fast copies go that share links.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <esker/device/platform.hpp>
#include <esker/transfer/batch/topology.hpp>

namespace esker::transfer {

/// A copy that is under way.
struct Flow {
  const Topology::Route* route;
  double most_bytes_per_s = std::numeric_limits<double>::infinity();  // beside what its links allow
};

struct Throughput {
  std::vector<double> bytes_per_s;         // a flow
  std::vector<std::uint32_t> bottlenecks;  // a flow: the link that keeps it; kNone: nothing but its own limit
  static constexpr std::uint32_t kNone = ~0u;
};

/// Progressive filling: all flows rise together, and one stops when a link of its route is full. What comes
/// out is max-min fair: none gets more unless one with less would get less still.
///
/// A link whose opposite carries flows has its bandwidth of both directions at once. Where the opposite
/// stays below its own, it has a share of the difference back, by how far below.
ESKER_API Throughput throughput(const Topology& topology, std::span<const Flow> flows);

}  // namespace esker::transfer
