// Kernels whose lanes send messages into a package queue, one for each way to elect.
#pragma once

#include <cstdint>

#include <esker/aggregator/command.hpp>
#include <esker/bench/queue/producers.hpp>
#include <esker/device/election/fine_grain.hpp>
#include <esker/device/election/per_lane.hpp>
#include <esker/device/election/per_wave.hpp>
#include <esker/device/election/predicated.hpp>
#include <esker/device/group.hpp>
#include <esker/device/group_packer.hpp>
#include <esker/net/gpu/sink.hpp>
#include <esker/queue/package_queue.hpp>
#include <type_traits>

namespace esker::bench {

/// A queue as a sink; a lane that waits for the outside gives way.
struct QueueSink {
  PackageQueue queue;

  ESKER_HD std::uint32_t columns(std::uint32_t words) const { return queue.columns(words); }
  ESKER_HD std::uint64_t reserve(std::uint32_t packages) { return queue.reserve(packages); }
  ESKER_HD bool was_empty(std::uint64_t ticket) const { return queue.was_empty(ticket); }
  ESKER_HD std::uint64_t* row(std::uint64_t ticket, std::uint32_t words, std::uint32_t r) const {
    return queue.row(ticket, words, r);
  }
  ESKER_HD void publish(std::uint64_t ticket, std::uint32_t command, std::uint32_t words,
                        std::uint32_t count) {
    queue.publish(ticket, command, words, count);
  }
  template <class AnyLane>
  ESKER_HD void pause(const AnyLane& lane) const {
    lane.yield();
  }
};
static_assert(Sink<QueueSink>);

/// What every kernel below is given.
template <std::uint32_t Words>
struct Sending {
  Production production;
  QueueSink sink;

  /// The words of message `m` of the lane.
  ESKER_HD void make(const GroupLane& lane, std::uint64_t m, std::uint64_t (&words)[Words]) const {
    words[0] = production.first_word(lane.global_id(), m);
    for (std::uint32_t r = 1; r < Words; ++r) words[r] = words[0] + r;
  }
  /// Sends it with `style`.
  template <class Style>
  ESKER_HD void send(Style&& style, GroupLane& lane, QueueSink& to, std::uint64_t m) const {
    std::uint64_t words[Words];
    make(lane, m, words);
    style.send(lane, to, production.command, words);
  }
};

/// The default. `BlockWords` is what a group gathers before it takes a slot.
template <std::uint32_t Words, std::uint32_t BlockWords>
struct SendAutoGrouped : Sending<Words> {
  ESKER_HD void operator()(GroupLane& lane) const {
    QueueSink to = this->sink;
    GroupPacker<QueueSink, BlockWords> packer(lane, to);
    const std::uint64_t mine = this->production.messages_of(lane.global_id());
    for (std::uint64_t m = 0; m < mine; ++m) {
      std::uint64_t words[Words];
      this->make(lane, m, words);
      packer.append(this->production.command, words);
    }
    packer.close();
  }
};

/// Styles that any lane uses in any branch.
template <std::uint32_t Words, class Style>
struct SendDiverged : Sending<Words> {
  ESKER_HD void operator()(GroupLane& lane) const {
    QueueSink to = this->sink;
    const std::uint64_t mine = this->production.messages_of(lane.global_id());
    for (std::uint64_t m = 0; m < mine; ++m) this->send(Style{}, lane, to, m);
  }
};

/// Software predication: everyone loops to the largest trip count of the wave, or of the group.
template <std::uint32_t Words, class Style>
struct SendTogether : Sending<Words> {
  ESKER_HD void operator()(GroupLane& lane) const {
    QueueSink to = this->sink;
    const std::uint64_t mine = this->production.messages_of(lane.global_id());
    const std::uint64_t most = most_messages(lane, mine, Style{});
    for (std::uint64_t m = 0; m < most; ++m) this->send(Style{m < mine}, lane, to, m);
  }

 private:
  ESKER_HD static std::uint64_t most_messages(GroupLane& lane, std::uint64_t mine, PerWave) {
    return lane.wave().reduce(mine, Max{});
  }
  ESKER_HD static std::uint64_t most_messages(GroupLane& lane, std::uint64_t mine, Predicated) {
    return lane.group().reduce(mine, Max{});
  }
};

template <std::uint32_t Words>
struct SendFineGrain : Sending<Words> {
  static constexpr std::uint32_t kMaxLanes = 1024;

  ESKER_HD void operator()(GroupLane& lane) const {
    QueueSink to = this->sink;
    FineGrainBarrier<kMaxLanes> members(lane, lane.scratch<FineGrainState<kMaxLanes>>());
    members.join();
    lane.group().sync();
    const std::uint64_t mine = this->production.messages_of(lane.global_id());
    for (std::uint64_t m = 0; m < mine; ++m) this->send(FineGrain<kMaxLanes>{members}, lane, to, m);
    members.leave();
  }
};

/// As the runtime's lanes send to PEs of other hosts, all of them in `share`.
template <std::uint32_t Words>
struct SendThroughOutbox : Sending<Words> {
  static constexpr std::uint32_t kMostGroupLanes = kOutboxGroupLanes;
  const gpu::PeState* share;

  ESKER_HD void operator()([[maybe_unused]] GroupLane& lane) const {
#if defined(ESKER_ON_GPU)
    using Outbox = gpu::GroupOutbox<4096>;
    Outbox::begin(lane, gpu::copy_pe_state(lane, share));
    Outbox outbox(gpu::hash_seed_of(lane));
    const Command command = Command::from_word(this->production.command);
    const std::uint64_t mine = this->production.messages_of(lane.global_id());
    for (std::uint64_t m = 0; m < mine; ++m) {
      std::uint64_t words[Words];
      this->make(lane, m, words);
      (void)outbox.append(command, std::integral_constant<std::uint32_t, Words>{}, words);
    }
    outbox.close();
#endif
  }
};

namespace detail {

template <std::uint32_t Words, class Use>
void with_kernel_of_width(const Producing& how, const Production& production, const PackageQueue& queue,
                          const gpu::PeState* share, Use use) {
  const Sending<Words> sending{production, {queue}};
  switch (how.election) {
    case Election::kOutbox:
      return use(SendThroughOutbox<Words>{sending, share});
    case Election::kAutoGroup:
      if (how.package_bytes <= 512 * 8) return use(SendAutoGrouped<Words, 512>{sending});
      if (how.package_bytes <= 1024 * 8) return use(SendAutoGrouped<Words, 1024>{sending});
      return use(SendAutoGrouped<Words, kMaxStageBytes / 8>{sending});
    case Election::kPerLane:
      return use(SendDiverged<Words, PerLane>{sending});
    case Election::kPerConvergedWave:
      return use(SendDiverged<Words, PerConvergedWave>{sending});
    case Election::kPerWave:
      return use(SendTogether<Words, PerWave>{sending});
    case Election::kPredicated:
      return use(SendTogether<Words, Predicated>{sending});
    case Election::kFineGrain:
      return use(SendFineGrain<Words>{sending});
  }
}

}  // namespace detail

/// Calls `use` with the kernel for these settings. `how.words` is one of kMessageWords. `share` is for
/// outboxes.
template <class Use>
void with_kernel(const Producing& how, const Production& production, const PackageQueue& queue,
                 const gpu::PeState* share, Use use) {
  switch (how.words) {
    case 1:
      return detail::with_kernel_of_width<1>(how, production, queue, share, use);
    case 2:
      return detail::with_kernel_of_width<2>(how, production, queue, share, use);
    case 3:
      return detail::with_kernel_of_width<3>(how, production, queue, share, use);
    case 4:
      return detail::with_kernel_of_width<4>(how, production, queue, share, use);
    case 8:
      return detail::with_kernel_of_width<8>(how, production, queue, share, use);
  }
}

}  // namespace esker::bench
