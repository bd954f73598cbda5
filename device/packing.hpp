// What all packers of messages share: the open package, the packer that fills it, and the sink that takes it.
#pragma once

#include <concepts>
#include <cstdint>
#include <esker/device/lane.hpp>
#include <esker/device/platform.hpp>

namespace esker {

/// A package that is being filled: messages of one command, each of `width` 64-bit words, column-major. Word
/// r of the message in column c is word at(r, c) of the package's memory.
struct OpenPackage {
  std::uint32_t command;
  std::uint16_t width;
  std::uint16_t bin;      // which of its packer's destinations it is for; 0 where there is one
  std::uint32_t columns;  // messages that fit

  ESKER_HD std::uint32_t at(std::uint32_t row, std::uint32_t column) const { return row * columns + column; }
};

/// In place of a message's word 0: a void column, which was taken and holds no message. It is no message's.
inline constexpr std::uint64_t kVoidColumn = ~std::uint64_t{0} >> 1;

/// Gathers messages into open packages, one or none a bin, and flushes packages: sends them on.
///
/// State.    A package is open, complete (it takes no more columns, and all that are taken are written) or
///           sent. Complete are a full package and one that is closed early: for another command, for its
///           age, or because nothing more comes.
/// Contract. append(message) puts one message, or those of a whole package, into the open package of their
///           bin and command, and opens one where there is none. Whoever completes a package flushes it,
///           before append() returns. close() flushes what is left: nothing that was appended stays behind. A
///           group's packer has a handle for each lane, and each lane closes its own; the last one flushes.
/// Progress. A packer never waits between taking a column and writing it. It waits, if at all, with a
///           complete package, for the sink.
///
/// `Message` is what append() takes. Implementations: GroupPacker (a group's lanes, one sink), GroupOutbox (a
/// GPU's group, a mailbox for each peer), Outbox::Filling (the lanes of a host thread), NodeBuffers
/// (packages, by destination).
template <class P, class... Message>
concept Packer = std::derived_from<typename P::Package, OpenPackage> &&
    requires(P& packer, Message... message) {
  packer.append(message...);
  packer.close();
};

/// Where packages go: the producer's side of a package queue, and one step of waiting.
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
/// Progress. The waiting loop stands in the election or packer and not in the sink: on hardware whose waves
/// run in lock step, a lane whose slot is empty must be able to publish while its neighbour still waits.
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
