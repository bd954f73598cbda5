// The host as esker-info shows it.
#pragma once

#include <cstdint>
#include <vector>

/// What this process may use: a launcher's binding or a container's limits make it less than the host.
struct Topology {
  int packages = 0;
  int cores = 0;
  int hardware_threads = 0;
  int allowed_threads = 0;
  std::uint64_t memory_bytes = 0;
  std::vector<std::uint64_t> numa_bytes;  // memory of each NUMA node
};

/// Throws esker::Error{kDevice} if hwloc cannot read the topology.
Topology read_topology();
