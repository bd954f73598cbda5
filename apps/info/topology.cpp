// The host, by hwloc.
#include "topology.hpp"

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include <hwloc.h>

#include <esker/error.hpp>

Topology read_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) {
    throw esker::Error(esker::Error::Kind::kDevice,
                       std::string("hwloc_topology_init failed: ") + std::strerror(errno));
  }
  const std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)> topology(raw,
                                                                                    hwloc_topology_destroy);
  // By default hwloc leaves out what this process may not use, and the host would look smaller than it is.
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  if (hwloc_topology_load(raw) != 0) {
    throw esker::Error(esker::Error::Kind::kDevice,
                       std::string("hwloc_topology_load failed: ") + std::strerror(errno));
  }

  Topology result;
  result.packages = hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_PACKAGE);
  result.cores = hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_CORE);
  result.hardware_threads = hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_PU);
  const std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)> bound(hwloc_bitmap_alloc(),
                                                                            hwloc_bitmap_free);
  result.allowed_threads = hwloc_get_cpubind(raw, bound.get(), HWLOC_CPUBIND_PROCESS) == 0
                               ? hwloc_bitmap_weight(bound.get())
                               : hwloc_bitmap_weight(hwloc_topology_get_allowed_cpuset(raw));
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(raw, HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    result.numa_bytes.push_back(node->attr->numanode.local_memory);
    result.memory_bytes += node->attr->numanode.local_memory;
  }
  return result;
}
