// A GPU's counters of messages, and the snapshot of them that a progress kernel leaves with the host.
#pragma once

#include <cstdint>
#include <type_traits>

#include <esker/device/atomic.hpp>
#include <esker/device/platform.hpp>

namespace esker::gpu {

inline constexpr std::uint32_t kMaxLinks = 16;  // PEs of a host whose GPUs reach each other, itself included

/// In device memory. They only grow.
struct Totals {
  std::uint64_t applied;      // messages applied here, by any path
  std::uint64_t sent;         // messages that left lanes or handlers and do not pass the host queue
  std::uint64_t local;        // of them, those to this PE
  std::uint64_t direct;       // of them, those that lanes here have applied in peers' heaps
  std::uint64_t packages;     // to peers
  std::uint64_t bytes;        // in them
  std::uint64_t by_handlers;  // messages that handlers have sent
  std::uint64_t asked;        // requests in mailboxes of peers
  std::uint64_t answered;     // replies that have been applied here
  std::uint64_t sent_to[kMaxLinks];
  std::uint64_t applied_from[kMaxLinks];
};
static_assert(sizeof(Totals) == (9 + 2 * kMaxLinks) * sizeof(std::uint64_t), "lanes copy it word by word");

/// A word of Totals, for lanes.
ESKER_HD inline DeviceAtomic<std::uint64_t>& counter(std::uint64_t& word) {
  static_assert(sizeof(DeviceAtomic<std::uint64_t>) == sizeof(std::uint64_t));
  return reinterpret_cast<DeviceAtomic<std::uint64_t>&>(word);
}

/// A progress kernel's result, written by its last group.
struct ProgressSnapshot {
  Totals totals;
  std::uint64_t moved;            // messages that the progress kernel has applied or sent on
  std::uint64_t handler_backlog;  // messages of handlers that nobody has sent on
  std::uint64_t waiting;          // waiting_bit()s of handlers whose messages it has left
};
static_assert(std::is_trivially_copyable_v<ProgressSnapshot>);

/// The bit of a package's kind above 0, that is, of a handler. Kinds that share a bit are not told apart.
ESKER_HD constexpr std::uint64_t waiting_bit(std::uint32_t kind) { return std::uint64_t{1} << kind % 64; }

}  // namespace esker::gpu
