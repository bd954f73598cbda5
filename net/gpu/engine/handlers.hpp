// Handlers on the device: their code, and the memory that they need there.
#pragma once

#include <cstdint>

#include <esker/device/device.hpp>
#include <esker/net/gpu/engine/handler_registry.hpp>
#include <esker/net/gpu/pe_state.hpp>
#include <esker/net/handler_table.hpp>

namespace esker::gpu {

/// Contract. The user's thread adds; its device is the current one. For each handler check(), prepare() and
///           add(), in that order.
class Handlers {
 public:
  /// Throws Error{kHandler} if the handler's source was not compiled for the device.
  static void check(const HandlerTable::Entry& entry);
  /// Makes the memory that handlers need. True: `pe_state` has changed, and is to be published.
  bool prepare(const Device& device, PeState& pe_state);
  /// Loads the handler's code; progress kernels may call it from now on.
  void add(std::uint32_t index, const HandlerOnDevice& code, const Occupancy& occupancy);
  const HandlerRegistry& registry() const { return registry_; }

 private:
  HandlerRegistry registry_;
  DeviceArray<std::byte> slots_;
  DeviceArray<HandlerShard> shards_;
  DeviceArray<DeviceAtomic<std::uint32_t>> ownership_locks_;
};

}  // namespace esker::gpu
