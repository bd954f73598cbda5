// What the domains of a task graph share, and what each has of its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include <esker/device/atomic.hpp>
#include <esker/device/platform.hpp>
#include <esker/tasks/channel.hpp>
#include <esker/tasks/ending.hpp>
#include <esker/tasks/graph_options.hpp>
#include <esker/tasks/lanes.hpp>
#include <esker/tasks/progress.hpp>
#include <esker/tasks/state.hpp>

namespace esker::tasks::detail {

/// Each lane of a wave looks at one.
inline constexpr std::uint32_t kMostChannels = 32;

/// Sums of one channel, over domains.
enum ChannelCount : std::uint32_t {
  kElements,
  kBatches,
  kFullBatches,
  kShared,
  kSpilled,
  kInlined,
  kChannelCounts
};

/// What a domain has of a channel, in its scratchpad.
struct OwnChannel {
  std::uint32_t count;    // elements in its buffer; while a batch runs also those that found it full
  std::uint32_t stacked;  // on its stack in memory, likewise
  std::uint32_t waiting;  // that it saw in the channel, when it looked last; at most 2^31
  std::uint32_t has_seeds;
  std::uint32_t most_waiting, most_stacked;
  std::uint32_t buffer_at;  // words from the start of the scratchpad
  std::uint32_t unused;
  std::uint64_t counts[kChannelCounts];
};
ESKER_PASS_BEGIN

/// Where elements wait that domains share: bytes to it.
using Ring = ChannelView<std::byte>;

/// A channel, or an output, as domains find it.
struct ChannelState {
  Ring ring;
  Ring spill;              // kSpill
  std::byte* stacks;       // kInline: a stack a domain. Of an output: its elements
  const std::byte* seeds;  // elements that wait when the run begins, without gaps
  std::uint64_t seed_count;
  std::uint32_t stack_capacity;  // of one. Of an output: in all
  std::uint32_t words;           // of an element
  std::uint32_t buffer_at;
  WhenFull when_full;
  alignas(kLineBytes) DeviceAtomic<std::uint64_t> next;  // seed to be taken; of an output: place to be filled
  alignas(kLineBytes) DeviceAtomic<std::uint64_t> counts[kChannelCounts];
  DeviceAtomic<std::uint32_t> most_waiting, most_stacked;

  /// Racy.
  ESKER_HD std::uint64_t seeds_left() const {
    const std::uint64_t taken = next.load_relaxed();
    return taken < seed_count ? seed_count - taken : 0;
  }
};

/// One run, in memory that all domains reach. The host writes it before each run.
///
/// Protocol `open` counts elements that domains share and that are not finished: seeds, and what was put
///          into a channel or its spill memory. An element is counted before it can be taken. A domain that
///          takes some owes them, and settles when it has nothing left of all that came of them. So `open`
///          is 0 when nothing waits and nothing runs, and then for ever; whoever brings it to 0 ends the run.
/// Ordering [open] an element is counted before its publish(), in the lane that publishes.
struct GraphState : Ending {
  alignas(kLineBytes) DeviceAtomic<std::uint64_t> open;
  alignas(kLineBytes) DeviceAtomic<std::uint64_t> sum;
  DeviceAtomic<std::uint64_t> waits;
  Mailboxes mailboxes;  // of domains that have nothing: a bundle says that channels have something
  ChannelState channels[kMostChannels];
};

/// A domain's view of a run. By value: it stays in registers.
struct GraphPlace {
  GraphState* state;
  std::uint32_t* scratch;
  Progress progress;
  std::uint32_t buffer;  // elements of each channel that its scratchpad has place for
  std::uint32_t domain;  // its number

  // The compiler is told what is in memory; it sees what is at hand. Told that, too, nvcc 13.0 takes nodes'
  // code for unreachable, and leaves it out (docs/lab/tasks.md).
  /// What each lane's tasks have added: kSums, before the channels.
  ESKER_HD std::uint64_t* sums() const { return reinterpret_cast<std::uint64_t*>(scratch); }
  ESKER_HD OwnChannel& own(std::uint32_t channel) const {
    return reinterpret_cast<OwnChannel*>(scratch + 2 * DomainLanes::kSums)[channel];
  }
  /// Where a channel's buffer starts: a column a word.
  ESKER_HD std::uint32_t* buffer_of(const OwnChannel& channel) const { return scratch + channel.buffer_at; }
  ESKER_HD ChannelState& channel(std::uint32_t number) const {
    return DomainLanes::in_memory(state)->channels[number];
  }
  /// Element i of the domain's stack of a channel.
  ESKER_HD std::uint32_t* stacked(const ChannelState& c, std::uint32_t i) const {
    const std::uint64_t element = std::uint64_t{domain} * c.stack_capacity + i;
    return reinterpret_cast<std::uint32_t*>(c.stacks) + element * c.words;
  }

  /// One element for each active lane of the view: store(words) fills it. True for those for which there was
  /// place: the first of them.
  template <class View, class Store>
  ESKER_HD bool put(View& together, const Ring& ring, bool active, const Store& store) const {
    std::uint32_t element = 0;
    const bool got = ring.try_allocate(together, element, active);
    const Position mine = together.position_among(got);
    if (mine.total == 0) return false;
    if (got && mine.index == 0) (void)state->open.fetch_add_relaxed(mine.total);
    together.sync();  // [open]
    if (got) store(reinterpret_cast<std::uint32_t*>(&ring[element]));
    ring.publish(together, element, got);
    return got;
  }
};

ESKER_PASS_END

}  // namespace esker::tasks::detail
