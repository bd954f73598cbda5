// A progress kernel: a kernel of the runtime's own that applies what has arrived and sends on what handlers
// have sent, when no lane of the user's does. It ends by itself; the host starts the next.
#pragma once

#include <cstdint>
#include <string>

#include <esker/device/gpu/occupancy.hpp>
#include <esker/device/launch.hpp>
#include <esker/net/gpu/sink.hpp>

namespace esker::gpu {

/// Loads the library's own progress kernel, which has no handlers. `occupancy` is the broker of its device.
/// Returns the scratchpad that a group takes beside its pool.
std::uint32_t load_plain_progress_kernel(const Occupancy& occupancy);
/// Starts it on the stream: "", or what went wrong.
std::string start_plain_progress_kernel(const PeState* pe_state, std::uint64_t number, ProgressShape shape,
                                        void* stream);

#if defined(ESKER_DEVICE_COMPILER)

/// The body of a progress kernel.
///
/// Contract. Progress kernels run one after the other. The last group to end writes the snapshot: all that
///           this PE had applied by then and, if neither a kernel of the user's nor a handler ran, all that
///           it has sent. Where nothing moved, the handlers' queues are empty too.
/// Progress. Each wave polls every place that it is responsible for, again while it finds something, there
///           or, where handlers are called, elsewhere. It does so a bounded number of times: a memory call
///           that waits for the device waits for one progress kernel at most. It polls a peer's mailbox a
///           bounded number of times.
template <class Handlers>
struct ProgressKernel {
  using Policy = ProgressPolicy;
  static constexpr std::uint32_t kGroupLanes = Policy::kGroupLanes, kMostGroupLanes = kGroupLanes;
  const PeState* pe_state_memory;
  std::uint64_t number;      // of this progress kernel: 1, 2, ...
  std::uint32_t pool_words;  // of a group's pool
  Handlers handlers;

  ESKER_HD void operator()([[maybe_unused]] GroupLane& lane) const {
#if defined(ESKER_ON_GPU)
    const PeState& pe_state = copy_pe_state(lane, pe_state_memory);
    using Outbox = ProgressOutbox;
    Outbox::begin(lane, pe_state, pool_words);
    const std::uint32_t seed = hash_seed_of(lane);
    const auto active = lane.wave();
    const Position mine = active.position_among(true);
    const std::uint32_t waves = static_cast<std::uint32_t>(lane.lanes() / mine.total);
    const auto wave = static_cast<std::uint32_t>(lane.global_id() / mine.total);
    constexpr bool kCalls = !std::is_same_v<Handlers, NoHandler>;
    const std::uint32_t all = places(pe_state), polls = (all + waves - 1) / waves;
    // With a handler one package a round, and then the messages that it has sent: else these would pile up.
    const std::uint32_t most = kCalls ? 1 : polls;
    std::uint64_t moved = 0, waiting = 0;
    for (std::uint32_t round = 0; round < Policy::kRounds; ++round) {
      // Its own places, and after these, if it found nothing, what other waves have not got to. One call:
      // where a compiler inlines all, two would take twice the stack.
      std::uint64_t now = 0;
      for (std::uint32_t look = 0; look < (kCalls && all > 0 ? 2u : 1u) && now == 0; ++look) {
        const bool own = look == 0;
        const std::uint32_t start = own ? wave * polls : (seed >> round) % all;
        const Applied applied =
            apply_some(pe_state, handlers, active, seed, start, own ? polls : mine.total, most);
        now = applied.messages;
        if (own) waiting = applied.waiting;  // of the last round
      }
      if constexpr (kCalls) Outbox::flush_pending(seed, active);
      for (std::uint32_t shard = wave % kHandlerShards; shard < kHandlerShards; shard += waves) {
        for (std::uint32_t sent = 1, i = 0; i < Policy::kBatches && sent > 0; ++i) {
          if (active.any(Outbox::is_blocked())) break;
          sent = send_on<Outbox>(seed, shard, active);
          active.sync();
          now += sent;
        }
      }
      moved += now;
      if (active.position_among(now > 0).total == 0) break;
    }
    Outbox(seed).close();
    DeviceWords& words = *pe_state.words;
    ProgressResult& result = words.progress_result;
    if (mine.index == 0 && moved > 0) counter(result.moved).fetch_add_relaxed(moved);
    if (waiting != 0) bit_or(&result.waiting, waiting);
    auto group = lane.group();
    group.sync();
    const auto groups = static_cast<std::uint32_t>(lane.lanes() / kGroupLanes);
    // Every lane's updates come before this, and the last group's reads after it.
    const bool last = lane.lane() == 0 && words.progress_groups.fetch_add_acq_rel(1) + 1 == groups;
    if (!group.broadcast(last, 0)) return;
    // A word a lane: one lane would take as long for all as the rest of the progress kernel.
    ProgressSnapshot& snapshot = pe_state.host->snapshot;
    constexpr std::uint32_t kWords = sizeof(Totals) / sizeof(std::uint64_t);
    for (std::uint32_t i = lane.lane(); i < kWords; i += kGroupLanes) {
      reinterpret_cast<std::uint64_t*>(&snapshot.totals)[i] =
          counter(reinterpret_cast<std::uint64_t*>(pe_state.totals)[i]).load_relaxed();
    }
    std::uint32_t backlog = 0;
    if (pe_state.has_handlers() && lane.lane() < kHandlerShards)
      backlog = static_cast<std::uint32_t>(pe_state.handler_queue(lane.lane()).was_occupied());
    backlog = group.reduce(backlog, Sum{});  // also: all of the snapshot is written
    if (lane.lane() != 0) return;
    words.progress_groups.store_relaxed(0);
    snapshot.moved = counter(result.moved).load_relaxed();
    snapshot.waiting = counter(result.waiting).load_relaxed();
    counter(result.moved).store_relaxed(0);
    counter(result.waiting).store_relaxed(0);
    snapshot.handler_backlog = backlog;
    pe_state.host->progress_kernel.store_release(number);  // [progress]
#endif
  }
};

/// Loads the progress kernel that applies for `Handlers` too. Not while a kernel waits for one. Returns the
/// scratchpad that a group takes beside its pool.
template <class Handlers>
std::uint32_t load_progress_kernel(const Occupancy& occupancy) {
  const CompiledKernel kernel = compiled<ProgressKernel<Handlers>>();
  if (is_out_of_order(kernel.attributes())) {
    throw Error(Error::Kind::kDevice,
                "this build is for GPUs whose scratchpad keeps an order that this one's need not keep; "
                "configure with -DCMAKE_CUDA_ARCHITECTURES=native");
  }
  (void)kernel.groups_a_processor(ProgressPolicy::kGroupLanes, 0);  // loads it
  // Where it is refused, a launch says so.
  (void)kernel.allow_scratch(occupancy.scratch_left_of(kernel, ~0u));
  return kernel.declared_scratch() + kScratchAside;
}
/// Starts it on the stream. Returns "", or what went wrong.
template <class Handlers>
std::string start_progress_kernel(const Handlers& handlers, const PeState* pe_state, std::uint64_t number,
                                  ProgressShape shape, void* stream) {
  using Body = ProgressKernel<Handlers>;
  const LaunchShape lanes{std::uint64_t{shape.groups} * Body::kGroupLanes, Body::kGroupLanes, 32};
  return launch_on_device(lanes, stream, Body{pe_state, number, shape.pool_bytes / 8, handlers},
                          shape.pool_bytes);
}

#endif

}  // namespace esker::gpu
