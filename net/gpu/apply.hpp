// Stage 4 on the device: packages of peers, frames of the network and messages to oneself become atomics
// and handler calls on the heap. Whoever waits, or has just sent, applies some.
#pragma once

#include <cstdint>
#include <esker/device/gpu/heap_update.hpp>
#include <esker/device/group.hpp>
#include <esker/device/lane_group.hpp>
#include <esker/net/gpu/share.hpp>

namespace esker::gpu {

/// What a kernel can apply beside the built-in operations: nothing, or messages for one handler.
struct NoHandler {
  static constexpr std::uint32_t index = 0;
};
template <class Call>
struct OneHandler {
  std::uint32_t index;
  Call call;
};

#if defined(ESKER_ON_GPU)

/// Messages of one command: word r of message i is words[r * stride + i].
struct Messages {
  Command command;
  std::uint32_t words_a_message;
  std::uint32_t count;
  std::uint32_t stride;
  const std::uint64_t* words;
  std::uint32_t source;

  ESKER_HD std::uint64_t word(std::uint32_t r, std::uint32_t i) const { return words[r * stride + i]; }
  ESKER_HD std::uint64_t offset(std::uint32_t i) const { return word(0, i) & kOffsetMask; }
};

ESKER_HD inline bool is_inside(const DeviceShare& share, const Messages& m, std::uint64_t offset,
                               std::uint32_t bytes, std::uint32_t alignment) {
  const bool is_aligned = offset % alignment == 0;
  if (share.heap.bytes >= bytes && offset <= share.heap.bytes - bytes && is_aligned) return true;
  // A PE that has come out of allocate() earlier may send to what this kernel has not heard of yet.
  const std::uint64_t end = counter(*const_cast<std::uint64_t*>(share.heap_end)).load_relaxed();
  if (end >= bytes && offset <= end - bytes && is_aligned) return true;
  tell(share, {Trouble::kBadArrival, m.source, 0, 0, 0, offset, bytes, "apply"});
  return false;
}

template <Operation O, class T>
ESKER_HD void update_all(const DeviceShare& share, const Messages& m, const Position& mine) {
#pragma unroll 4
  for (std::uint32_t i = mine.index; i < m.count; i += mine.total) {
    const std::uint64_t offset = m.offset(i);
    if (!is_inside(share, m, offset, sizeof(T), sizeof(T))) continue;
    T* const at = reinterpret_cast<T*>(share.heap.base + offset);
    if constexpr (O == Operation::kInc) {
      add<T>(at, 1);
    } else {
      const T value = detail::from_word<T>(m.word(1, i));
      if constexpr (O == Operation::kPut) store(at, value);
      if constexpr (O == Operation::kAdd) add(at, value);
      if constexpr (O == Operation::kMin) lower_to(at, value);
      if constexpr (O == Operation::kMax) raise_to(at, value);
      if constexpr (O == Operation::kAnd) bit_and(at, value);
      if constexpr (O == Operation::kOr) bit_or(at, value);
      if constexpr (O == Operation::kXor) bit_xor(at, value);
    }
  }
}

ESKER_HD inline void put_16(const DeviceShare& share, const Messages& m, const Position& mine) {
  for (std::uint32_t i = mine.index; i < m.count; i += mine.total) {
    const std::uint64_t offset = m.offset(i);
    if (!is_inside(share, m, offset, 16, 16)) continue;
    auto* const at = reinterpret_cast<std::uint64_t*>(share.heap.base + offset);
    store(at, m.word(1, i));
    store(at + 1, m.word(2, i));
  }
}

template <Operation O>
ESKER_HD void update_integers(const DeviceShare& share, const Messages& m, const Position& mine) {
  switch (m.command.operand) {
    case Operand::kInt32:
      return update_all<O, std::int32_t>(share, m, mine);
    case Operand::kUint32:
      return update_all<O, std::uint32_t>(share, m, mine);
    case Operand::kInt64:
      return update_all<O, std::int64_t>(share, m, mine);
    default:
      return update_all<O, std::uint64_t>(share, m, mine);
  }
}

template <Operation O>
ESKER_HD void update_numbers(const DeviceShare& share, const Messages& m, const Position& mine) {
  switch (m.command.operand) {
    case Operand::kFloat:
      return update_all<O, float>(share, m, mine);
    case Operand::kDouble:
      return update_all<O, double>(share, m, mine);
    default:
      return update_integers<O>(share, m, mine);
  }
}

ESKER_HD inline void put_all(const DeviceShare& share, const Messages& m, const Position& mine) {
  switch (m.command.operand) {
    case Operand::kBytes1:
      return update_all<Operation::kPut, std::uint8_t>(share, m, mine);
    case Operand::kBytes2:
      return update_all<Operation::kPut, std::uint16_t>(share, m, mine);
    case Operand::kBytes4:
      return update_all<Operation::kPut, std::uint32_t>(share, m, mine);
    case Operand::kBytes16:
      return put_16(share, m, mine);
    default:
      return update_all<Operation::kPut, std::uint64_t>(share, m, mine);
  }
}

template <class Handlers>
ESKER_HD bool can_apply(const Handlers& handlers, std::uint32_t command) {
  const Command c = Command::from_word(command);
  return c.operation != Operation::kActiveMessage || c.handler == handlers.index;
}

/// Calls the handler for each message, alone with respect to the granule of its target.
template <class Call>
ESKER_HD void call_handler(const DeviceShare& share, const OneHandler<Call>& handler, const Messages& m,
                           const Position& mine) {
  for (std::uint32_t i = mine.index; i < m.count; i += mine.total) {
    const std::uint64_t offset = m.offset(i);
    if (!is_inside(share, m, offset, Call::kTargetBytes, Call::kTargetAlignment)) continue;
    std::uint64_t arguments[Call::kWords];
    for (std::uint32_t r = 1; r < Call::kWords; ++r) arguments[r - 1] = m.word(r, i);
    DeviceAtomic<std::uint32_t>& lock =
        share.granule_locks[offset / HandlerContext::kGranuleBytes % kGranuleLocks];
    HandlerContext context(share, m.source, m.command.handler);
    // Taking, calling and giving back in one step of the loop: a lane of the same wave may hold the lock.
    for (bool called = false; !called;) {
      std::uint32_t free = 0;
      if (lock.compare_exchange_acquire(free, 1)) {
        handler.call(context, share.heap.base + offset, arguments);
        lock.store_release(0);
        called = true;
      }
    }
  }
}

/// Applies all messages of a built-in operation. Collective over a crew, of which this lane is `mine`.
ESKER_HD inline void apply_built_in(const DeviceShare& share, const Messages& m, const Position& mine) {
  switch (m.command.operation) {
    case Operation::kPut:
      return put_all(share, m, mine);
    case Operation::kInc:
      return update_integers<Operation::kInc>(share, m, mine);
    case Operation::kAdd:
      return update_numbers<Operation::kAdd>(share, m, mine);
    case Operation::kMin:
      return update_numbers<Operation::kMin>(share, m, mine);
    case Operation::kMax:
      return update_numbers<Operation::kMax>(share, m, mine);
    case Operation::kAnd:
      return update_integers<Operation::kAnd>(share, m, mine);
    case Operation::kOr:
      return update_integers<Operation::kOr>(share, m, mine);
    case Operation::kXor:
      return update_integers<Operation::kXor>(share, m, mine);
    case Operation::kActiveMessage:
      return;
  }
}

/// The same, not inlined: every kernel that sends would carry it in each place where it may wait.
ESKER_NOINLINE ESKER_HD inline void apply_messages(const DeviceShare& share, const Messages& m,
                                                   const Position& mine) {
  apply_built_in(share, m, mine);
}

template <class Handlers>
ESKER_HD void apply_any(const DeviceShare& share, const Handlers& handlers, const Messages& m,
                        const Position& mine) {
  if constexpr (!std::is_same_v<Handlers, NoHandler>) {
    if (m.command.operation == Operation::kActiveMessage) return call_handler(share, handlers, m, mine);
  }
  apply_messages(share, m, mine);
}

/// Takes up to kBatch packages of one channel and applies them. Returns the messages applied.
///
/// Ordering. [fill] each lane acquires the turn of the slot that it looks at; the crew's sync passes that
/// on. [reuse] and quiet: the updates come before the release of the slot and before applied_from grows.
template <class Handlers, class Crew>
ESKER_HD std::uint32_t apply_channel(const DeviceShare& share, const Handlers& handlers, Crew& crew,
                                     const Position& mine, std::uint32_t link, std::uint32_t channel) {
  constexpr std::uint32_t kBatch = 4;
  PackageQueue queue = share.from[link].channel(channel);
  const std::uint32_t looks = mine.total < kBatch ? mine.total : kBatch;
  const bool leads = mine.index + 1 == mine.total;
  const std::uint64_t head = crew.broadcast(leads ? queue.was_head() : std::uint64_t{0}, mine.last);
  bool usable = false;
  if (mine.index < looks && queue.was_full(head + mine.index)) {
    usable = can_apply(handlers, queue.header(head + mine.index).command);
  }
  // The first that is not usable ends the batch: those below it have as many usable ones below them.
  const Position place = crew.position_among(usable);
  std::uint32_t batch = crew.position_among(usable && place.index == mine.index).total;
  if (batch == 0) return 0;
  if (leads && !queue.try_take(head, batch)) batch = 0;
  batch = crew.broadcast(batch, mine.last);
  crew.sync();
  std::uint32_t applied = 0;
  for (std::uint32_t b = 0; b < batch; ++b) {
    const auto& header = queue.header(head + b);
    const Messages messages{
        Command::from_word(header.command),   header.words,     header.count, queue.columns(header.words),
        queue.row(head + b, header.words, 0), share.pe_of[link]};
    apply_any(share, handlers, messages, mine);
    applied += messages.count;
  }
  crew.sync();
  if (batch == 0) return 0;
  if (mine.index < batch) queue.release(head + mine.index);
  if (leads) {
    counter(share.totals->applied_from[link]).fetch_add_acq_rel(applied);
    counter(share.totals->applied).fetch_add_relaxed(applied);
  }
  return applied;
}

/// Takes a chunk of the frame in slot `f`, if one is left, and applies it. Returns the messages applied.
template <class Handlers, class Crew>
ESKER_HD std::uint32_t apply_chunk(const DeviceShare& share, const Handlers& handlers, Crew& crew,
                                   const Position& mine, std::uint32_t f) {
  FrameTurn& turn = share.frame_turns[f];
  const std::byte* const slot = share.frames + f * share.frame_bytes;
  const auto* const chunks = reinterpret_cast<const Chunk*>(slot);
  const bool leads = mine.index + 1 == mine.total;
  std::uint64_t seen = 0;
  bool took = false;
  if (leads) {
    seen = turn.cursor.load_relaxed();
    if (FrameTurn::next(seen) < FrameTurn::chunks(seen)) seen = turn.cursor.load_acquire();  // [frame]
    const std::uint32_t next = FrameTurn::next(seen);
    took = next < FrameTurn::chunks(seen) && can_apply(handlers, chunks[next].command) &&
           turn.cursor.compare_exchange_acquire(seen, seen + 1);
  }
  if (crew.position_among(took).total == 0) return 0;
  seen = crew.broadcast(seen, mine.last);
  crew.sync();
  const Chunk chunk = chunks[FrameTurn::next(seen)];
  const Messages messages{Command::from_word(chunk.command),
                          chunk.words,
                          chunk.count,
                          chunk.stride,
                          reinterpret_cast<const std::uint64_t*>(slot + chunk.at),
                          chunk.source};
  apply_any(share, handlers, messages, mine);
  crew.sync();
  if (leads) {
    counter(share.totals->applied).fetch_add_relaxed(messages.count);
    if (turn.finished.fetch_add_acq_rel(1) + 1 == FrameTurn::chunks(seen)) {
      turn.finished.store_relaxed(0);
      share.host->frame_done[f].store_release(FrameTurn::generation(seen));  // [frame]
    }
  }
  return messages.count;
}

/// Places where messages arrive: the channels of each link, and the slots of frames.
ESKER_HD inline std::uint32_t places(const DeviceShare& share) {
  return share.links * kChannels + (share.frames == nullptr ? 0 : kFrames);
}

/// Looks at `looks` of these places, from `start` on, and applies what it finds. Channel c of link l is place
/// c * links + l. Collective over a crew. Waits for nobody.
template <class Handlers, class Crew>
ESKER_NOINLINE ESKER_HD std::uint32_t apply_some(const DeviceShare& share, const Handlers& handlers,
                                                 Crew& crew, const Position& mine, std::uint32_t start,
                                                 std::uint32_t looks) {
  std::uint32_t applied = 0;
  const std::uint32_t channels = share.links * kChannels;
  const std::uint32_t all = places(share);
  if (all == 0) return 0;
  for (std::uint32_t look = 0; look < looks; ++look) {
    const std::uint32_t place = (start + look) % all;
    applied += place < channels
                   ? apply_channel(share, handlers, crew, mine, place % share.links, place / share.links)
                   : apply_chunk(share, handlers, crew, mine, place - channels);
  }
  return applied;
}

#endif

}  // namespace esker::gpu
