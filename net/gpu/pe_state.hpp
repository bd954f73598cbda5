// The state of a PE that its lanes, and those of its progress kernels, work with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <esker/aggregator/command.hpp>
#include <esker/device/atomic.hpp>
#include <esker/device/gpu/occupancy.hpp>
#include <esker/device/platform.hpp>
#include <esker/net/gpu/device_words.hpp>
#include <esker/net/gpu/frame_layout.hpp>
#include <esker/net/gpu/handler_memory.hpp>
#include <esker/net/gpu/handler_on_device.hpp>
#include <esker/net/gpu/host_words.hpp>
#include <esker/net/gpu/ownership.hpp>
#include <esker/net/gpu/pool.hpp>
#include <esker/net/gpu/progress_policy.hpp>
#include <esker/net/gpu/totals.hpp>
#include <esker/net/handler.hpp>
#include <esker/queue/mailbox.hpp>
#include <esker/queue/package_queue.hpp>

namespace esker::gpu {

// In place of a link, in the table of destinations.
inline constexpr std::uint32_t kSelf = kMaxLinks;
inline constexpr std::uint32_t kNetwork = kMaxLinks + 1;

/// Everything that lanes need.
///
/// Contract. There are two copies in device memory: one for the user's kernels and one for progress kernels.
/// The host writes each in the order of the stream on which its kernels run, so no kernel reads a copy that
/// is half written. Each group copies it to its scratchpad, since acquiring empties the cache that it would
/// otherwise stay in.
struct PeState {
  HeapView heap;
  std::uint32_t pe;
  std::uint32_t n_pes;      // destinations
  std::uint32_t links;      // the last one leads to this PE itself
  std::uint32_t self_link;  // that one
  bool has_network;         // some destination is reached through the host
  // For each destination a link, kSelf or kNetwork: of the first ones here, of all in the table behind.
  static constexpr std::uint32_t kNear = 64;
  std::uint8_t near_bins[kNear];
  const std::uint8_t* bin_of;
  PackageQueue host_queue;
  /// The same for progress kernels: lanes that wait must not keep them from sending.
  PackageQueue progress_queue;
  // Of each link.
  std::uint32_t pe_of[kMaxLinks];
  Mailbox to[kMaxLinks];
  Mailbox from[kMaxLinks];
  std::byte* heap_of[kMaxLinks];  // where lanes here reach it; else null
  std::uint32_t most_direct;      // messages that a lane applies itself before those for peers travel
  FrameTurn* frame_turns;
  const std::byte* frames;       // kFrames slots of frame_bytes; null: the host applies
  std::uint64_t frame_bytes;     // FrameLayout::slot_bytes
  std::uint64_t frame_at;        // FrameLayout::frame_at
  HandlerShard* handler_shards;  // null: there are no handlers
  std::byte* handler_slots;
  DeviceAtomic<std::uint32_t>* ownership_locks;
  Totals* totals;
  HostWords* host;
  DeviceWords* words;

  ESKER_HD bool has_handlers() const { return handler_shards != nullptr; }
  /// Links that are used: the one to this PE itself only where there are handlers.
  ESKER_HD std::uint32_t used_links() const { return links - (links > 0 && !has_handlers() ? 1 : 0); }
  /// Packages that a group of lanes keeps open, one for each way out.
  ESKER_HD std::uint32_t bins() const { return used_links() + (has_network ? 1 : 0); }
  ESKER_HD HandlerQueue handler_queue(std::uint32_t shard) const {
    HandlerShard& counters = handler_shards[shard];
    return {&counters.tail, &counters.head, handler_slots + shard * kHandlerShardBytes, kHandlerSlots,
            kHandlerSlotBytes};
  }
  ESKER_HD std::uint32_t bin(std::uint64_t destination) const {
    return destination < kNear ? near_bins[destination] : bin_of[destination];
  }
};
static_assert(std::is_trivially_copyable_v<PeState> && sizeof(PeState) % 8 == 0);

/// Called before a lane sends a package: the host must know whether handlers, or replies, will send. The
/// kernel's end orders it.
ESKER_HD inline void note_call(const PeState& pe_state, std::uint32_t command) {
  if (may_send(Command::from_word(command))) pe_state.host->calls_handlers.store_relaxed(1);
}

/// Reports a fault to the host. Any lane; the host sees the first report.
ESKER_NOINLINE ESKER_HD inline void report_fault(const PeState& pe_state, FaultReport report) {
  std::uint32_t none = 0;
  if (!pe_state.words->fault_taken.compare_exchange_relaxed(none, 1)) return;
  pe_state.host->report = report;
  pe_state.host->fault.store_release(1);  // [fault]
}

}  // namespace esker::gpu
