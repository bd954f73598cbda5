// A progress kernel: a kernel of the runtime's own that applies what has arrived and sends on what handlers
// have sent, when no lane of the user's does. It ends by itself; the host starts the next.
#pragma once

#include <cstdint>
#include <string>

#include <esker/device/launch.hpp>
#include <esker/net/gpu/sink.hpp>

namespace esker::gpu {

/// Loads the library's own progress kernel, which has no handlers.
void load_plain_progress_kernel();
/// Starts it on the stream: "", or what went wrong.
std::string start_plain_progress_kernel(const PeState* pe_state, std::uint64_t number, ProgressShape shape,
                                        void* stream);

#if defined(ESKER_DEVICE_COMPILER)

/// The body of a progress kernel.
///
/// Contract. Passes run one after the other. The last group to end writes the snapshot: all that this PE had
///           applied by then, and if no kernel of the user's ran, and no handler, all that it has sent. Where
///           nothing moved, the handlers' queue is empty too.
/// Progress. Each wave looks at every place that it is responsible for, again as long as it finds something,
///           a bounded number of times: memory calls that wait for the device wait for a progress kernel at
///           most. It waits for a peer a bounded number of looks.
template <class Handlers>
struct ProgressKernel {
  static constexpr std::uint32_t kGroupLanes = kProgressLanes, kMostGroupLanes = kGroupLanes;
  static constexpr std::uint32_t kRounds = 8;
  static constexpr std::uint32_t kBatches = 16;  // of a wave's width, of what handlers have sent, in a round
  const PeState* share_at;
  std::uint64_t number;
  std::uint32_t pool_words;  // that a group is lent
  Handlers handlers;

  ESKER_HD void operator()([[maybe_unused]] GroupLane& lane) const {
#if defined(ESKER_ON_GPU)
    const PeState& pe_state = copy_pe_state(lane, share_at);
    using Outbox = ProgressOutbox;
    Outbox::begin(lane, pe_state, pool_words);
    const std::uint32_t seed = hash_seed_of(lane);
    const auto active = lane.wave();
    const Position mine = active.position_among(true);
    const std::uint32_t waves = static_cast<std::uint32_t>(lane.lanes() / mine.total);
    const auto wave = static_cast<std::uint32_t>(lane.global_id() / mine.total);
    const std::uint32_t looks = (places(pe_state) + waves - 1) / waves;
    // With handlers one package a round, and then what they have sent: else it would come to wait in heaps.
    const std::uint32_t most = std::is_same_v<Handlers, NoHandler> ? looks : 1;
    std::uint64_t moved = 0, waiting = 0;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      const Applied applied = apply_some(pe_state, handlers, active, seed, wave * looks, looks, most);
      std::uint64_t now = applied.messages;
      waiting = applied.waiting;  // of the last round
      if constexpr (!std::is_same_v<Handlers, NoHandler>) Outbox::flush_pending(seed, active);
      for (std::uint32_t shard = wave % kHandlerShards; shard < kHandlerShards; shard += waves) {
        for (std::uint32_t sent = 1, i = 0; i < kBatches && sent > 0; ++i) {
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
    ProgressResult& result = *pe_state.progress_result;
    if (mine.index == 0 && moved > 0) counter(result.moved).fetch_add_relaxed(moved);
    if (waiting != 0) bit_or(&result.waiting, waiting);
    auto group = lane.group();
    group.sync();
    const auto groups = static_cast<std::uint32_t>(lane.lanes() / kGroupLanes);
    // Every lane's updates come before this, and what the last group reads after it.
    const bool last = lane.lane() == 0 && pe_state.progress_groups->fetch_add_acq_rel(1) + 1 == groups;
    if (!group.broadcast(last, 0)) return;
    // A word a lane: one after the other they would take as long as the progress kernel.
    HostWords::Snapshot& snapshot = pe_state.host->snapshot;
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
    pe_state.progress_groups->store_relaxed(0);
    snapshot.moved = counter(result.moved).load_relaxed();
    snapshot.waiting = counter(result.waiting).load_relaxed();
    counter(result.moved).store_relaxed(0);
    counter(result.waiting).store_relaxed(0);
    snapshot.handler_backlog = backlog;
    pe_state.host->progress_kernel.store_release(number);  // [progress]
#endif
  }
};

/// The same with what `Handlers` can apply. Not while a kernel waits for it. Returns the scratchpad that a
/// group takes beside its pool.
template <class Handlers>
std::uint32_t load_progress_kernel() {
  using Body = ProgressKernel<Handlers>;
  if (is_out_of_order(attributes_of<Body>())) {
    throw Error(Error::Kind::kDevice,
                "this build is for GPUs whose scratchpad keeps an order that this one's need not keep; "
                "configure with -DCMAKE_CUDA_ARCHITECTURES=native");
  }
  (void)resident_groups<Body>(Body::kGroupLanes);
  (void)allow_scratch<Body>(scratch_left_of<Body>(~0u));  // where it is refused, a launch says so
  return declared_scratch<Body>() + kScratchAside;
}
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
