// Where an election puts its packages.
#pragma once

#include <concepts>
#include <cstdint>
#include <esker/device/lane.hpp>
#include <esker/device/platform.hpp>

namespace esker {

/// The producer's side of a package queue, and one step of waiting.
///
/// Contract. Named as PackageQueue names them:
///   columns(words)       messages of `words` words that one package holds
///   reserve(packages)    first of consecutive tickets; never fails, never waits
///   was_empty(ticket)    may the holder fill it; acquires the slot
///   row(ticket, words, r)
///   publish(ticket, command, words, count)    releases the slot
/// and one more:
///   pause(lane)          one step of waiting for the outside. It calls lane.yield() (without it a lane
///                        would keep its fiber siblings, one of which may hold the ticket that it waits
///                        for, from running) and may do progress work. `lane` is a Lane or a GroupLane.
///
/// Progress. The waiting loop stands in the election and not in the sink: on hardware whose waves run
/// in lock step, a lane whose slot is empty must be able to publish while its neighbour still waits.
template <class S>
concept Sink = requires(S sink, Lane lane, std::uint64_t ticket, std::uint32_t n) {
  { sink.columns(n) } -> std::same_as<std::uint32_t>;
  { sink.reserve(n) } -> std::same_as<std::uint64_t>;
  { sink.was_empty(ticket) } -> std::same_as<bool>;
  { sink.row(ticket, n, n) } -> std::same_as<std::uint64_t*>;
  sink.publish(ticket, n, n, n);
  sink.pause(lane);
};

}  // namespace esker
