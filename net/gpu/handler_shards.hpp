// Where messages that handlers have sent wait to be sent on: the shards of the handlers' queue.
#pragma once

#include <cstdint>
#include <esker/device/group.hpp>
#include <esker/device/launch.hpp>
#include <esker/net/gpu/pe_state.hpp>

#if defined(ESKER_ON_GPU)

namespace esker::gpu {

/// The shard that this lane's wave uses.
ESKER_HD inline std::uint32_t handler_shard_here() {
  constexpr std::uint32_t kWaves = ProgressPolicy::kGroupLanes / 32;
  return (static_cast<std::uint32_t>(own_group()) * kWaves + GroupLane::wave_of(own_lane())) % kHandlerShards;
}

/// Space for what handlers send. Handlers never wait, so they are not called while much of it waits to be
/// sent on. Each call is taken to send one message. Those that send more have the other half of the queue.
class HandlerSpace {
 public:
  ESKER_HD explicit HandlerSpace(const PeState& pe_state)
      : queue_{pe_state.handler_queue(handler_shard_here())},
        calls_{&pe_state.handler_shards[handler_shard_here()].calls} {}

  ESKER_HD bool try_take(std::uint32_t messages) const {
    const auto has = [&](std::uint32_t calls) {
      return queue_.was_occupied() + calls + messages <= kHandlerSlots / 2;
    };
    if (!has(calls_->load_relaxed())) return false;
    if (has(calls_->fetch_add_relaxed(messages))) return true;
    give_back(messages);
    return false;
  }
  ESKER_HD void give_back(std::uint32_t messages) const { (void)calls_->fetch_add_relaxed(0u - messages); }

 private:
  HandlerQueue queue_;
  DeviceAtomic<std::uint32_t>* calls_;
};

/// Puts a message of a handler, whose word r is words[r * stride], where it waits to be sent on: in this
/// wave's shard, or so many behind it. If there is no space the job ends, since a handler must not wait.
ESKER_HD inline void queue_message(const PeState& pe_state, std::uint32_t command, std::uint32_t width,
                                   const std::uint64_t* words, std::uint32_t stride,
                                   std::uint32_t shards_on = 0) {
  HandlerQueue queue = pe_state.handler_queue((handler_shard_here() + shards_on) % kHandlerShards);
  const std::uint64_t ticket = queue.reserve();
  if (!queue.was_empty(ticket)) {
    return report_fault(pe_state,
                        {Fault::kHandlersOutrun, pe_state.pe, 0, 1, 0, queue.slots(), 0, "a handler"});
  }
  for (std::uint32_t r = 0; r < width; ++r) queue.row(ticket, width, r)[0] = words[r * stride];
  queue.publish(ticket, command, width, 1);
}

}  // namespace esker::gpu

#endif
