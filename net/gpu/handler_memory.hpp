// Where messages that handlers have sent wait to be sent on, in device memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include <esker/aggregator/command.hpp>
#include <esker/device/atomic.hpp>
#include <esker/device/platform.hpp>
#include <esker/queue/package_queue.hpp>

namespace esker::gpu {

/// Several queues, since taking from one is a compare-exchange. Once half of a queue's slots are taken,
/// handlers whose messages it would hold are no longer called.
inline constexpr std::uint32_t kHandlerShards = 64;
inline constexpr std::uint32_t kHandlerSlots = 1u << 13;  // of a shard
inline constexpr std::uint32_t kHandlerSlotBytes = kLineBytes;
static_assert(kHandlerSlotBytes >= kMaxMessageWords * 8);

/// One message a slot. Only this device uses it, so its atomics are of the device's scope.
using HandlerQueue = BasicPackageQueue<DeviceAtomic>;
inline constexpr std::size_t kHandlerShardBytes =
    HandlerQueue::storage_bytes(kHandlerSlots, kHandlerSlotBytes);

struct HandlerShard {
  HandlerQueue::Counter tail, head;
  alignas(kLineBytes) DeviceAtomic<std::uint32_t> calls;  // under way, for which slots are kept
};
static_assert(sizeof(HandlerShard) == 3 * kLineBytes);

}  // namespace esker::gpu
