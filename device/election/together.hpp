// One reservation for all lanes of a view: what the predicated, the fine-grain and the per-wave election do.
#pragma once

#include <cstdint>
#include <esker/device/group.hpp>
#include <esker/device/lane_group.hpp>
#include <esker/device/packing.hpp>

namespace esker::detail {

/// Sends the messages of the active lanes of `view` (thesis, Figure 5-2b and Table A-1).
///
/// Contract. Collective over `view`; `command` is the same in all active lanes.
///
/// Protocol. The leader, the highest active lane, reserves as many packages as the messages need. One
/// after the other: the leader waits until the slot is empty; the lanes write their columns; the leader
/// publishes. The view's two syncs order the leader's acquire before the writes, and them before its
/// release.
///
/// Progress. The leader waits for the outside alone, holding tickets that every earlier ticket's holder
/// publishes without waiting for this one.
template <std::uint32_t Words, LaneGroup View, class S>
ESKER_HD void send_together(GroupLane& lane, View& view, S& sink, std::uint32_t command,
                            const std::uint64_t (&words)[Words], bool active) {
  static_assert(Sink<S>);
  const Position mine = view.position_among(active);
  if (mine.total == 0) return;
  const bool leads = active && mine.index + 1 == mine.total;
  const std::uint32_t columns = sink.columns(Words);
  const std::uint32_t packages = (mine.total + columns - 1) / columns;
  std::uint64_t ticket = view.broadcast(leads ? sink.reserve(packages) : std::uint64_t{0}, mine.last);

  for (std::uint32_t begin = 0; begin < mine.total; begin += columns, ++ticket) {
    const std::uint32_t left = mine.total - begin;
    if (leads) {
      while (!sink.was_empty(ticket)) sink.pause(lane);
    }
    view.sync();
    if (active && mine.index >= begin && mine.index - begin < columns) {
      for (std::uint32_t r = 0; r < Words; ++r) sink.row(ticket, Words, r)[mine.index - begin] = words[r];
    }
    view.sync();
    if (leads) sink.publish(ticket, command, Words, left < columns ? left : columns);
  }
}

}  // namespace esker::detail
