// This machine's topology, by hwloc.
#include <esker/transfer/batch/machine.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>

#include <hwloc.h>

#include <esker/error.hpp>

#include <fmt/format.h>

namespace esker::transfer {

namespace {

using Kind = Topology::Kind;

class Hardware {
 public:
  /// As these devices need it, read once a process: it takes milliseconds, and what hwloc has loaded to see
  /// PCI devices leaves memory behind each time.
  static const Hardware& of(std::span<const Device> devices) {
    bool has_bus = false;
    for (const Device& device : devices)
      has_bus = has_bus || device.properties().bus_address.find(':') != std::string::npos;
    if (has_bus) {
      static const Hardware with_bus(true);
      return with_bus;
    }
    static const Hardware without(false);
    return without;
  }

  explicit Hardware(bool with_bus) {
    const auto require = [](int status, const char* call) {
      if (status != 0)
        throw Error(Error::Kind::kDevice, fmt::format("topology: {} failed: {}", call, std::strerror(errno)));
    };
    require(hwloc_topology_init(&raw_), "hwloc_topology_init");
    owner_.reset(raw_);
    hwloc_topology_set_flags(raw_, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    if (with_bus) hwloc_topology_set_io_types_filter(raw_, HWLOC_TYPE_FILTER_KEEP_ALL);
    require(hwloc_topology_load(raw_), "hwloc_topology_load");
  }

  std::string processor_model() const {
    hwloc_obj* const package = hwloc_get_obj_by_type(raw_, HWLOC_OBJ_PACKAGE, 0);
    const char* const model = package == nullptr ? nullptr : hwloc_obj_get_info_by_name(package, "CPUModel");
    return model == nullptr ? "a host" : model;
  }
  std::uint32_t numa_nodes() const {
    return static_cast<std::uint32_t>(std::max(1, hwloc_get_nbobjs_by_type(raw_, HWLOC_OBJ_NUMANODE)));
  }
  /// The bridges above a PCI device, the host's first; nothing if hwloc does not know it.
  std::vector<hwloc_obj_t> bridges_above(const std::string& bus_address, std::uint32_t* numa_node) const {
    std::vector<hwloc_obj_t> bridges;
    hwloc_obj* const device = bus_address.find(':') == std::string::npos
                                  ? nullptr
                                  : hwloc_get_pcidev_by_busidstring(raw_, bus_address.c_str());
    *numa_node = 0;
    if (device == nullptr) return bridges;
    for (hwloc_obj_t at = device->parent; at != nullptr && at->type == HWLOC_OBJ_BRIDGE; at = at->parent)
      bridges.push_back(at);
    std::reverse(bridges.begin(), bridges.end());
    hwloc_obj* const place = hwloc_get_non_io_ancestor_obj(raw_, device);
    if (place != nullptr && place->nodeset != nullptr) {
      const int first = hwloc_bitmap_first(place->nodeset);
      for (std::uint32_t i = 0; i < numa_nodes(); ++i) {
        hwloc_obj* const node = hwloc_get_obj_by_type(raw_, HWLOC_OBJ_NUMANODE, i);
        if (node != nullptr && static_cast<int>(node->os_index) == first) *numa_node = i;
      }
    }
    return bridges;
  }

 private:
  hwloc_topology_t raw_ = nullptr;
  std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)> owner_{nullptr, hwloc_topology_destroy};
};

std::string name_on(const Hardware& hardware, std::span<const Device> devices) {
  std::map<std::string, int> kinds;
  for (const Device& device : devices) {
    const std::string& model = device.properties().model;
    ++kinds[to_string(device.backend()) + (model.empty() ? "" : ": " + model)];
  }
  std::string name = hardware.processor_model();
  for (const auto& [kind, count] : kinds) name += fmt::format(", {} x {}", count, kind);
  return name;
}

/// Devices that all reach each other.
std::vector<std::vector<std::size_t>> peer_groups(std::span<const Device> devices) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].backend() == Backend::kCpu) continue;
    const auto reaches_all = [&](const std::vector<std::size_t>& group) {
      return std::all_of(group.begin(), group.end(), [&](std::size_t j) {
        // A device may stand for several, and is no peer of itself.
        return devices[i].properties().index != devices[j].properties().index &&
               devices[i].reach(devices[j]) && devices[j].reach(devices[i]);
      });
    };
    const auto found = std::find_if(groups.begin(), groups.end(), reaches_all);
    if (found != groups.end()) {
      found->push_back(i);
    } else {
      groups.push_back({i});
    }
  }
  std::erase_if(groups, [](const auto& group) { return group.size() < 2; });
  return groups;
}

}  // namespace

std::vector<Device> open_all_devices(const std::string& name, std::uint64_t at_most) {
  const Device first = Device::open(name);
  if (first.backend() == Backend::kCpu) return {first};
  std::vector<Device> devices;
  for (std::uint32_t i = 0; i < std::min<std::uint64_t>(first.properties().devices, at_most); ++i)
    devices.push_back(Device::open(fmt::format("{}:{}", to_string(first.backend()), i)));
  return devices;
}

std::string machine_name(std::span<const Device> devices) { return name_on(Hardware::of(devices), devices); }

Topology machine_topology(std::span<const Device> devices) {
  const Hardware& hardware = Hardware::of(devices);
  Topology topology(name_on(hardware, devices));
  std::vector<std::uint32_t> processors;
  for (std::uint32_t i = 0; i < hardware.numa_nodes(); ++i) {
    const auto memory = topology.add(fmt::format("MEM{}", i), Kind::kMemory);
    processors.push_back(topology.add(fmt::format("CPU{}", i), Kind::kProcessor));
    topology.connect(memory, processors[i], {}, {});
    if (i > 0) topology.connect(processors[0], processors[i], {}, {});
  }
  struct Place {
    std::vector<hwloc_obj_t> bridges;
    std::uint32_t numa_node = 0;
  };
  std::vector<Place> places(devices.size());
  std::map<hwloc_obj_t, std::uint32_t> below;  // devices
  for (std::size_t i = 0; i < devices.size(); ++i) {
    places[i].bridges = hardware.bridges_above(devices[i].properties().bus_address, &places[i].numa_node);
    for (hwloc_obj* const bridge : places[i].bridges) ++below[bridge];
  }
  std::vector<std::uint32_t> peers_of(devices.size(), ~0u);  // the switch between a device and its peers
  std::uint32_t groups = 0;
  for (const std::vector<std::size_t>& group : peer_groups(devices)) {
    const auto between = topology.add(fmt::format("PEERS{}", groups++), Kind::kSwitch);
    for (const std::size_t i : group) peers_of[i] = between;
  }
  // A bridge above one device, or above the same ones as the bridge over it, is no place where data meets.
  std::map<hwloc_obj_t, std::uint32_t> node_of;
  std::uint32_t unplaced = ~0u, hubs = 0, switches = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const bool is_cpu = devices[i].backend() == Backend::kCpu;
    std::uint32_t above = processors[places[i].numa_node];
    std::uint32_t devices_above = 0;
    for (hwloc_obj* const bridge : places[i].bridges) {
      const bool is_hub = bridge->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST;
      if (!is_hub && (below[bridge] < 2 || below[bridge] == devices_above)) continue;
      devices_above = below[bridge];
      if (node_of.count(bridge) == 0) {
        node_of[bridge] = is_hub ? topology.add(fmt::format("HUB{}", hubs++), Kind::kHub)
                                 : topology.add(fmt::format("SWITCH{}", switches++), Kind::kSwitch);
        topology.connect(above, node_of[bridge], {}, {});
      }
      above = node_of[bridge];
    }
    if (!is_cpu && places[i].bridges.empty()) {
      if (unplaced == ~0u) {
        unplaced = topology.add("HUB", Kind::kHub);
        topology.connect(processors[0], unplaced, {}, {});
      }
      above = unplaced;
    }
    const auto node =
        topology.add(is_cpu ? fmt::format("DEVICE{}", i) : fmt::format("GPU{}", i), Kind::kDevice,
                     is_cpu ? Topology::Engines::kCaller : Topology::Engines::kADirection);
    // First, since of two routes as short a copy takes that over links that were added first.
    if (peers_of[i] != ~0u) topology.connect(peers_of[i], node, {}, {});
    topology.connect(above, node, {}, {});
  }
  return topology;
}

}  // namespace esker::transfer
