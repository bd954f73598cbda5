// This machine as a topology, and what its links carry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <esker/device/device.hpp>
#include <esker/device/platform.hpp>
#include <esker/transfer/batch/link_profile.hpp>
#include <esker/transfer/batch/topology.hpp>

namespace esker::transfer {

/// Every device of the back end that Device::open(name) opens, in their order, at most so many.
///
/// Errors. Error{kDevice}: as Device::open().
ESKER_API std::vector<Device> open_all_devices(const std::string& name = "auto",
                                               std::uint64_t at_most = ~std::uint64_t{0});

/// The model of its processors, and how many devices of which kind: whose profile is whose.
ESKER_API std::string machine_name(std::span<const Device> devices);

/// Memory and processor of each NUMA node, PCI bridges above several of the devices, and the devices, as
/// hwloc finds them; and a switch between devices that all reach each other's memory (NVLink, or PCI), which
/// from this call on they do. Device i of the topology is devices[i]. No bandwidth is known: calibrated()
/// adds it. GPUs whose place hwloc does not know share one hub.
///
/// Errors. Error{kDevice}: hwloc cannot read the machine.
ESKER_API Topology machine_topology(std::span<const Device> devices);

struct MeasureOptions {
  std::size_t most_bytes = 0;  // of the largest copies; 0: 64 MiB, and 4 MiB on a simulated GPU
  std::uint32_t repeats = 7;   // whose median counts
};

/// Measures the links of machine_topology(devices) by copies between pinned memory and the devices: of each
/// device by direction, startup and bandwidth fitted to sizes from 1/1024 of the largest on by least squares;
/// both directions at once; each link above several devices, with all of them
/// copying; and, where devices reach each other, the same between neighbours.
///
/// Contract. Nothing else copies meanwhile.
/// Errors.   Error{kTransfer}: most_bytes is below 64 KiB. Error{kDevice}, Error{kOutOfMemory}.
ESKER_API LinkProfile measure_links(std::span<const Device> devices, const MeasureOptions& options = {});

}  // namespace esker::transfer
