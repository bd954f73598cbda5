// Handlers' memory on the device, made with the first of them.
#include <fmt/format.h>

#include <esker/device/error.hpp>
#include <esker/net/gpu/engine/handlers.hpp>

namespace esker::gpu {

bool Handlers::prepare(const Device& device, PeState& pe_state) {
  if (!slots_.empty()) return false;
  slots_ =
      device.memory<std::byte>(kHandlerShards * kHandlerShardBytes, {"the queues for what handlers send"});
  shards_ = device.memory<HandlerShard>(kHandlerShards, {"counters of what handlers send"});
  ownership_locks_ =
      device.memory<DeviceAtomic<std::uint32_t>>(kOwnershipLocks, {"locks of ownership blocks"});
  pe_state.ownership_locks = ownership_locks_.data();
  pe_state.handler_shards = shards_.data();
  pe_state.handler_slots = slots_.data();
  return true;
}

void Handlers::add(std::uint32_t index, const HandlerOnDevice& code, const Occupancy& occupancy) {
  registry_.add({code, index, code.load(occupancy)});
}

void Handlers::check(const HandlerTable::Entry& entry) {
  if (entry.device != nullptr) return;
  throw Error(
      Error::Kind::kHandler,
      fmt::format("register_handler '{}': the heap is on a GPU, and this source was not compiled for it; "
                  "compile it with the device's compiler, or use --heap host",
                  entry.name));
}

}  // namespace esker::gpu
