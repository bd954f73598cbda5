// Stages 2 and 3 on the device: a group's package is binned by destination where it was gathered, and its
// parts are written straight into the peers' rings, applied here, or handed to the host's queue.
#pragma once

#include <cstdint>
#include <esker/device/election/auto_group.hpp>
#include <esker/device/group.hpp>
#include <esker/net/gpu/apply.hpp>
#include <esker/net/gpu/share.hpp>

#if defined(ESKER_ON_GPU)

namespace esker::gpu {

/// What binning a stage takes beside it, in scratchpad.
struct BinScratch {
  GroupAtomic<std::uint32_t> counts[kBins + 1];  // the last: of lanes without a message
  std::uint32_t first[kBins];        // of each bin in `order`
  std::uint64_t ticket[kBins];       // of the ring, or the host queue, that takes the bin
  std::uint16_t place[kStageWords];  // rank in its bin << 5 | bin
  std::uint16_t order[kStageWords];  // messages by bin
};
static_assert(kBins <= 32 && kStageWords <= 2048, "a place packs both");

/// After so many looks in vain a crew wakes the host.
inline constexpr std::uint32_t kLooksUntilStarving = 256;
inline constexpr std::uint32_t kNoBin = kBins;
inline constexpr std::uint64_t kSent = ~std::uint64_t{0};  // in place of a ticket

/// One step of waiting for room: applies what has arrived; when there is nothing, gives way. Collective
/// over the crew.
template <class Crew>
ESKER_NOINLINE ESKER_HD void wait_step(const DeviceShare& share, GroupLane& lane, Crew& crew,
                                       const Position& mine, std::uint32_t& looks) {
  const auto start = static_cast<std::uint32_t>(lane.group_id()) + 7 * looks;
  if (apply_some(share, NoHandler{}, crew, mine, start, 4) == 0) {
    lane.yield();
    if (++looks % kLooksUntilStarving == 0 && mine.index == 0) share.host->starving.store_relaxed(1);
  }
}

ESKER_HD inline PackageQueue queue_of(const DeviceShare& share, std::uint32_t bin, std::uint32_t channel) {
  return bin == kNetwork ? share.host_queue : share.to[bin].channel(channel);
}

/// Messages order[0 .. n) of the package into the slot: adjacent lanes write adjacent words of the link.
ESKER_HD inline void write_bin(const PackageQueue& queue, std::uint64_t ticket, const StagedPackage& package,
                               const std::uint16_t* order, std::uint32_t n, const Position& mine,
                               std::uint64_t keep) {
  std::uint64_t* const row = queue.row(ticket, package.words_a_message, 0);
#pragma unroll 4
  for (std::uint32_t i = mine.index; i < n; i += mine.total) row[i] = package.words[order[i]] & keep;
  const std::uint32_t columns = queue.columns(package.words_a_message);
  for (std::uint32_t r = 1; r < package.words_a_message; ++r) {
    const std::uint64_t* const words = package.words + r * package.stride;
    for (std::uint32_t i = mine.index; i < n; i += mine.total) row[r * columns + i] = words[order[i]];
  }
}

/// Takes a package out of the stage, with the crew that has the duty (BasicAutoGroup).
///
/// Protocol. Each message gets a rank in its destination's bin; a lane a bin takes a ticket of the ring's
/// channel, and each bin is written and published when its slot is empty. Messages to this PE are applied on
/// the spot. Afterwards the crew applies about as many messages as it has sent, so arrivals keep pace with
/// departures wherever all PEs send.
///
/// Progress. Waits for slots alone, and applies arrivals meanwhile: two GPUs full of lanes that wait for
/// each other's rings empty them.
template <class Crew>
ESKER_NOINLINE ESKER_HD void deliver(const DeviceShare& share, GroupLane& lane, Crew& crew,
                                     const Position& mine, const StagedPackage& package,
                                     BinScratch& scratch) {
  const std::uint32_t step = mine.total;
  const auto channel = static_cast<std::uint32_t>(lane.group_id() % kChannels);
  const std::uint32_t width = package.words_a_message;
  // Handlers run in passes alone.
  const bool has_handler = Command::from_word(package.command).operation == Operation::kActiveMessage;
  for (std::uint32_t b = mine.index; b <= kBins; b += step) scratch.counts[b].store_relaxed(0);
  crew.sync();
#pragma unroll 4
  for (std::uint32_t base = 0; base < package.count; base += step) {
    const std::uint32_t c = base + mine.index;
    const bool has = c < package.count;
    std::uint32_t bin = has ? share.bin(package.words[c] >> kOffsetBits) : kNoBin;
    if (bin == kSelf && has_handler) bin = share.self_link;
    const std::uint32_t rank = crew.draw(scratch.counts, bin);
    if (has) scratch.place[c] = static_cast<std::uint16_t>(rank << 5 | bin);
  }
  crew.sync();
  for (std::uint32_t b = mine.index; b < kBins; b += step) {
    std::uint32_t first = 0;
#pragma unroll
    for (std::uint32_t lower = 0; lower < kBins; ++lower) {
      if (lower < b) first += scratch.counts[lower].load_relaxed();
    }
    scratch.first[b] = first;
    if (b != kSelf && scratch.counts[b].load_relaxed() > 0) {
      scratch.ticket[b] = queue_of(share, b, channel).reserve();
    }
  }
  crew.sync();
#pragma unroll 4
  for (std::uint32_t c = mine.index; c < package.count; c += step) {
    const std::uint32_t place = scratch.place[c];
    scratch.order[scratch.first[place & 31] + (place >> 5)] = static_cast<std::uint16_t>(c);
  }
  crew.sync();

  const std::uint32_t here = scratch.counts[kSelf].load_relaxed();
  if (here > 0) {
    const Messages own{Command::from_word(package.command),  width,   here, package.stride, package.words,
                       scratch.order + scratch.first[kSelf], share.pe};
    apply_messages(share, own, mine);
  }

  if (mine.index == 0 && package.count > scratch.counts[kNetwork].load_relaxed()) {
    // Before a message can be applied: a PE that counts it as applied would count it as sent.
    counter(share.totals->sent).fetch_add_relaxed(package.count - scratch.counts[kNetwork].load_relaxed());
    counter(share.totals->local).fetch_add_relaxed(here + scratch.counts[share.self_link].load_relaxed());
    counter(share.totals->applied).fetch_add_relaxed(here);
  }
  crew.sync();

  // Each bin as soon as its slot is empty: a crew that kept one ticket unpublished while it waited for the
  // slot of another could wait for a crew that does the same the other way round.
  std::uint32_t looks = 0;
  for (std::uint32_t begin = 0; begin < kBins;) {
    const std::uint32_t b = begin + mine.index;
    bool waits = false;
    if (b < kBins && b != kSelf && scratch.counts[b].load_relaxed() > 0 && scratch.ticket[b] != kSent) {
      waits = true;
    }
    if (crew.position_among(waits).total == 0) {
      begin += step;
      continue;
    }
    const bool ready = waits && queue_of(share, b, channel).was_empty(scratch.ticket[b]);  // [reuse]
    const Position found = crew.position_among(ready);
    if (found.total == 0) {
      wait_step(share, lane, crew, mine, looks);
      continue;
    }
    crew.sync();
    // The highest ready one; the rest at the next look.
    const std::uint32_t bin = begin + found.last;
    PackageQueue queue = queue_of(share, bin, channel);
    const std::uint64_t ticket = scratch.ticket[bin];
    const std::uint32_t n = scratch.counts[bin].load_relaxed();
    write_bin(queue, ticket, package, scratch.order + scratch.first[bin], n, mine,
              bin == kNetwork ? ~std::uint64_t{0} : kOffsetMask);
    crew.sync();
    if (mine.index == 0) {
      if (bin != kNetwork && bin != share.self_link) {
        counter(share.totals->sent_to[bin]).fetch_add_relaxed(n);
        counter(share.totals->bytes).fetch_add_relaxed(8 * n * width);
        counter(share.totals->packages).fetch_add_relaxed(1);
      }
      queue.publish(ticket, package.command, width, n);
      scratch.ticket[bin] = kSent;
    }
    crew.sync();
  }
  const std::uint32_t remote = package.count - here;
  // As much again as was sent, where it arrives: this group's channel of each link, frames one at a time.
  if (remote > 0) {
    apply_some(share, NoHandler{}, crew, mine, channel * share.links, share.links);
    if (share.has_network) {
      const auto f = static_cast<std::uint32_t>(lane.group_id()) % kFrames;
      apply_some(share, NoHandler{}, crew, mine, share.links * kChannels + f, share.frames == nullptr ? 0 : 2);
    }
  }
}

}  // namespace esker::gpu

#endif
