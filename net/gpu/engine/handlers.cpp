// Handlers' memory on the device, made with the first of them.
#include <fmt/format.h>

#include <esker/net/gpu/engine/handlers.hpp>

namespace esker::gpu {

bool Handlers::prepare(PeState& pe_state) {
  if (slots_) return false;
  slots_ = DeviceMemory(kHandlerShards * kHandlerShardBytes, "the queues for what handlers send");
  shards_ = DeviceMemory(kHandlerShards * sizeof(HandlerShard), "counters of what handlers send");
  ownership_locks_ = DeviceMemory(kOwnershipLocks * sizeof(std::uint32_t), "locks of ownership blocks");
  pe_state.ownership_locks = ownership_locks_.as<DeviceAtomic<std::uint32_t>>();
  pe_state.handler_shards = shards_.as<HandlerShard>();
  pe_state.handler_slots = slots_.as<std::byte>();
  return true;
}

void Handlers::add(std::uint32_t index, const HandlerTable::Entry& entry, const Occupancy& occupancy) {
  registry_.add({*entry.device, index, entry.device->load(occupancy)});
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
