// Election per group and destination: the group's messages, sorted, leave in one list a destination (thesis,
// section 3.1.3, "coalesced APIs").
#pragma once

#include <cstdint>
#include <esker/device/atomic.hpp>
#include <esker/device/group.hpp>
#include <esker/device/packing.hpp>

namespace esker {

/// Scratchpad of the counting sort, zeroed: messages of the group for each destination.
struct DestinationCounts {
  static constexpr std::uint32_t kMost = 1024;
  GroupAtomic<std::uint32_t> of[kMost];
};

/// Contract. Every lane of the group calls it the same number of times, none having ended; those that are not
/// active send nothing. `destination` is below `destinations`, and that at most DestinationCounts::kMost. All
/// active lanes name the same command.
///
/// Protocol. An addition gives each message its place among those for its destination: the counting sort,
/// whose scatter goes straight into the list. Then, destination after destination, lane 0 reserves the list's
/// packages, the lanes write, and lane 0 publishes.
struct ByDestination {
  DestinationCounts& counts;
  std::uint32_t destinations;
  std::uint32_t destination;
  bool active = true;

  template <std::uint32_t Words, class S>
  ESKER_HD void send(GroupLane& lane, S& sink, std::uint32_t command, const std::uint64_t (&words)[Words]) {
    static_assert(Sink<S>);
    auto group = lane.group();
    const std::uint32_t mine = active ? counts.of[destination].fetch_add_relaxed(1) : 0;
    group.sync();
    for (std::uint32_t d = 0; d < destinations; ++d) {
      const std::uint32_t count = counts.of[d].load_relaxed();
      if (count > 0) send_list(lane, sink, command, words, active && destination == d, mine, count);
    }
    group.sync();
    if (active) counts.of[destination].store_relaxed(0);
    group.sync();
  }

 private:
  /// `count` messages for one destination; this lane's is number `mine`, if it has one.
  template <std::uint32_t Words, class S>
  ESKER_HD static void send_list(GroupLane& lane, S& sink, std::uint32_t command,
                                 const std::uint64_t (&words)[Words], bool has, std::uint32_t mine,
                                 std::uint32_t count) {
    auto group = lane.group();
    const bool leads = lane.lane() == 0;
    const std::uint32_t columns = sink.columns(Words);
    const std::uint32_t packages = (count + columns - 1) / columns;
    std::uint64_t ticket = group.broadcast(leads ? sink.reserve(packages) : std::uint64_t{0}, 0);
    for (std::uint32_t begin = 0; begin < count; begin += columns, ++ticket) {
      const std::uint32_t left = count - begin;
      if (leads) {
        while (!sink.was_empty(ticket)) sink.pause(lane);
      }
      group.sync();
      if (has && mine >= begin && mine - begin < columns) {
        for (std::uint32_t r = 0; r < Words; ++r) sink.row(ticket, Words, r)[mine - begin] = words[r];
      }
      group.sync();
      if (leads) sink.publish(ticket, command, Words, left < columns ? left : columns);
    }
  }
};

}  // namespace esker
