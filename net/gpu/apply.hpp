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
struct NoHandler {};
template <class Call>
struct OneHandler {
  std::uint32_t index;
  Call call;
};

#if defined(ESKER_ON_GPU)

struct ShareCopy {
  std::uint64_t words[sizeof(DeviceShare) / 8];
};
/// The group's own copy of what lanes share, in scratchpad: acquiring empties the cache that it would
/// otherwise stay in.
ESKER_HD inline const DeviceShare& share_here() {
  return reinterpret_cast<const DeviceShare&>(GroupLane::scratch_of<ShareCopy>());
}
/// Makes that copy. Collective over the group, once.
ESKER_HD inline const DeviceShare& copy_share(GroupLane& lane, const DeviceShare* share) {
  const auto* const from = reinterpret_cast<const std::uint64_t*>(share);
  ShareCopy& copy = GroupLane::scratch_of<ShareCopy>();
  for (std::uint32_t i = lane.lane(); i < sizeof(DeviceShare) / 8; i += lane.group_lanes())
    copy.words[i] = from[i];
  lane.group().sync();
  return share_here();
}

/// Messages of one command: word r of message i is words[r * stride + i].
struct Messages {
  static constexpr bool kMany = true;
  Command command;
  std::uint32_t words_a_message;
  std::uint32_t count;
  std::uint32_t stride;
  const std::uint64_t* words;
  std::uint32_t source;

  ESKER_HD std::uint64_t word(std::uint32_t r, std::uint32_t i) const { return words[r * stride + i]; }
  ESKER_HD std::uint64_t offset(std::uint32_t i) const { return word(0, i) & kOffsetMask; }

  /// Whether an operation of `bytes` may be applied there, as far as this kernel has heard.
  ESKER_HD static bool is_inside(const HeapView& heap, std::uint64_t at, std::uint32_t bytes,
                                 std::uint32_t alignment) {
    return heap.bytes >= bytes && at <= heap.bytes - bytes && at % alignment == 0;
  }
  /// A PE that has come out of allocate() earlier may send to what this kernel has not heard of yet.
  ESKER_NOINLINE ESKER_HD static bool may_be_inside(const DeviceShare& share, std::uint64_t at,
                                                    std::uint32_t bytes, std::uint32_t alignment,
                                                    std::uint32_t source) {
    const std::uint64_t end = counter(*const_cast<std::uint64_t*>(share.heap_end)).load_relaxed();
    if (is_inside({nullptr, end}, at, bytes, alignment)) return true;
    tell(share, {Trouble::kBadArrival, source, 0, 0, 0, at, bytes, "apply"});
    return false;
  }
};

/// One message of a lane's own to its own PE, whose call has been checked already.
struct OwnMessage {
  static constexpr bool kMany = false;
  Command command;
  const std::uint64_t* words;
  static constexpr std::uint32_t count = 1, source = 0;

  ESKER_HD std::uint64_t word(std::uint32_t r, std::uint32_t) const { return words[r]; }
  ESKER_HD std::uint64_t offset(std::uint32_t) const { return words[0] & kOffsetMask; }
  ESKER_HD static bool is_inside(const HeapView&, std::uint64_t, std::uint32_t, std::uint32_t) {
    return true;
  }
  ESKER_HD static bool may_be_inside(const DeviceShare&, std::uint64_t, std::uint32_t, std::uint32_t,
                                     std::uint32_t) {
    return true;
  }
};

// `M` is Messages or OwnMessage.

template <Operation O, class T>
ESKER_HD void update(T* at, std::uint64_t word) {
  const T value = detail::from_word<T>(word);
  if constexpr (O == Operation::kInc) add<T>(at, 1);
  if constexpr (O == Operation::kPut) store(at, value);
  if constexpr (O == Operation::kAdd) add(at, value);
  if constexpr (O == Operation::kMin) lower_to(at, value);
  if constexpr (O == Operation::kMax) raise_to(at, value);
  if constexpr (O == Operation::kAnd) bit_and(at, value);
  if constexpr (O == Operation::kOr) bit_or(at, value);
  if constexpr (O == Operation::kXor) bit_xor(at, value);
}

template <Operation O, class T, class M>
ESKER_HD void update_all(const DeviceShare& share, const M& m, const Position& mine) {
  const HeapView heap = share.heap;
  const auto apply = [&](std::uint64_t offset, std::uint64_t word) {
    update<O>(GroupLane::in_global(reinterpret_cast<T*>(heap.base + offset)), word);
  };
  // Several loads are under way before the first is used.
  constexpr std::uint32_t kAtOnce = M::kMany ? 8 : 1;
  for (std::uint32_t first = mine.index; first < m.count; first += kAtOnce * mine.total) {
    std::uint64_t offsets[kAtOnce], words[kAtOnce];
#pragma unroll
    for (std::uint32_t k = 0; k < kAtOnce; ++k) {
      const std::uint32_t i = first + k * mine.total;
      const bool is_there = kAtOnce == 1 || i < m.count;
      offsets[k] = is_there ? m.offset(i) : 0;
      words[k] = is_there && O != Operation::kInc ? m.word(1, i) : 0;
    }
    std::uint32_t rest = 0;  // a bit for each that is not inside at first sight
#pragma unroll
    for (std::uint32_t k = 0; k < kAtOnce; ++k) {
      if (kAtOnce > 1 && first + k * mine.total >= m.count) break;
      if (m.is_inside(heap, offsets[k], sizeof(T), sizeof(T))) {
        apply(offsets[k], words[k]);
      } else {
        rest |= 1u << k;
      }
    }
    for (; rest != 0; rest &= rest - 1) {
      const std::uint32_t i = first + GroupLane::lowest_bit(rest) * mine.total;
      if (m.may_be_inside(share, m.offset(i), sizeof(T), sizeof(T), m.source))
        apply(m.offset(i), O != Operation::kInc ? m.word(1, i) : 0);
    }
  }
}

template <class M>
ESKER_HD void put_16(const DeviceShare& share, const M& m, const Position& mine) {
  for (std::uint32_t i = mine.index; i < m.count; i += mine.total) {
    const std::uint64_t offset = m.offset(i);
    if (!m.is_inside(share.heap, offset, 16, 16) && !m.may_be_inside(share, offset, 16, 16, m.source))
      continue;
    auto* const at = GroupLane::in_global(reinterpret_cast<std::uint64_t*>(share.heap.base + offset));
    store(at, m.word(1, i));
    store(at + 1, m.word(2, i));
  }
}

template <Operation O, class M>
ESKER_HD void update_integers(const DeviceShare& share, const M& m, const Position& mine) {
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

template <Operation O, class M>
ESKER_HD void update_numbers(const DeviceShare& share, const M& m, const Position& mine) {
  switch (m.command.operand) {
    case Operand::kFloat:
      return update_all<O, float>(share, m, mine);
    case Operand::kDouble:
      return update_all<O, double>(share, m, mine);
    default:
      return update_integers<O>(share, m, mine);
  }
}

template <class M>
ESKER_HD void put_all(const DeviceShare& share, const M& m, const Position& mine) {
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

/// For whom a package is: 0, whoever applies; else a handler's pass.
ESKER_HD constexpr std::uint32_t kind_of(Command command) {
  return command.operation == Operation::kActiveMessage ? command.handler + 1u : 0;
}
ESKER_HD constexpr std::uint32_t kind_of(NoHandler) { return 0; }
template <class Call>
ESKER_HD std::uint32_t kind_of(const OneHandler<Call>& handler) {
  return handler.index + 1;
}

template <class Handlers>
ESKER_HD bool can_apply(const Handlers& handlers, std::uint32_t command) {
  const std::uint32_t kind = kind_of(Command::from_word(command));
  return kind == 0 || kind == kind_of(handlers);
}

/// Calls the handler for each message, alone with respect to the granule of its target.
template <class Call>
ESKER_HD void call_handler(const DeviceShare& share, const OneHandler<Call>& handler, const Messages& m,
                           const Position& mine) {
  for (std::uint32_t i = mine.index; i < m.count; i += mine.total) {
    const std::uint64_t offset = m.offset(i);
    if (!m.is_inside(share.heap, offset, Call::kTargetBytes, Call::kTargetAlignment) &&
        !m.may_be_inside(share, offset, Call::kTargetBytes, Call::kTargetAlignment, m.source))
      continue;
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
template <class M>
ESKER_HD void apply_built_in(const DeviceShare& share, const M& m, const Position& mine) {
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

/// A lane's own message to its own PE, of a command that the compiler knows or not.
ESKER_HD inline void apply_own(const DeviceShare& share, Command command, const std::uint64_t* words) {
  apply_built_in(share, OwnMessage{command, words}, Position{0, 1, 0});
}

/// Messages of others, not inlined: every kernel that sends would carry it in each place where it may wait.
/// All by value, as everywhere that is not inlined: what has an address stands in memory, and the cache in
/// front of it is emptied by every acquire of the processor.
ESKER_NOINLINE ESKER_HD inline void apply_messages(const DeviceShare& share, Messages m, Position mine) {
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

/// Applies the package in a slot that a lane of the crew has taken. Returns how many messages.
template <class Handlers, class Crew>
ESKER_HD std::uint32_t apply_slot(const DeviceShare& share, const Handlers& handlers, const Crew& crew,
                                  const Position& mine, std::uint32_t link, std::uint32_t slot) {
  crew.sync();  // what the lane that took it acquired, the crew may read
  const Mailbox& box = share.from[link];
  const Mailbox::Header header = box.header(slot);
  const Messages messages{Command::from_word(header.command), header.words,      header.count,
                          Mailbox::columns(header.words),     box.payload(slot), share.pe_of[link]};
  apply_any(share, handlers, messages, mine);
  crew.sync();
  return header.count;
}

/// Takes a chunk of the frame in slot `f`, if one is left, and applies it. Returns the messages applied.
template <class Handlers, class Crew>
ESKER_HD std::uint32_t apply_chunk(const DeviceShare& share, const Handlers& handlers, const Crew& crew,
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
  seen = crew.of_leader(seen);
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

/// Places where messages arrive: the slots of each link's mailbox, then those of frames.
ESKER_HD inline std::uint32_t places(const DeviceShare& share) {
  return share.links * Mailbox::kSlots + (share.frames == nullptr ? 0 : kFrames);
}

/// Whether a place is worth taking from.
ESKER_HD inline bool looks_ready(const DeviceShare& share, std::uint32_t place) {
  const std::uint32_t link = place / Mailbox::kSlots;
  if (link < share.links) return share.from[link].looks_full(place % Mailbox::kSlots);
  const std::uint64_t seen = share.frame_turns[place % Mailbox::kSlots].cursor.load_relaxed();
  return FrameTurn::next(seen) < FrameTurn::chunks(seen);
}

/// Looks at `looks` of these places, from `start` on, each lane at one at a time, and applies what stands in
/// up to `most` of them; crews with another `salt` prefer others. Collective over a crew. Waits for nobody.
/// Returns the messages applied.
///
/// Ordering. quiet: the updates come before applied_from grows.
template <class Handlers, class Crew>
ESKER_NOINLINE ESKER_HD std::uint32_t apply_some(const DeviceShare& share, Handlers handlers, Crew crew,
                                                 std::uint32_t salt, std::uint32_t start, std::uint32_t looks,
                                                 std::uint32_t most) {
  const Position mine = crew.position_among(true);
  const std::uint32_t all = places(share);
  std::uint32_t applied = 0;
  for (std::uint32_t looked = 0; looked < looks && most > 0; looked += mine.total) {
    const std::uint32_t place = (start + looked + mine.index) % all;
    const bool ready = looked + mine.index < looks && looks_ready(share, place);
    const Position rank = crew.position_among(ready);
    if (rank.total == 0) continue;
    const bool chosen = ready && (rank.index + salt) % rank.total < most;
    const std::uint32_t link = place / Mailbox::kSlots, slot = place % Mailbox::kSlots;
    const bool is_frame = link >= share.links;
    std::uint64_t turn = 0;
    bool took = chosen && !is_frame && share.from[link].try_take(slot, kind_of(handlers), turn);
    for (; crew.any(took); --most) {
      const std::uint32_t next = crew.of_first(took, place);
      const std::uint32_t count =
          apply_slot(share, handlers, crew, mine, next / Mailbox::kSlots, next % Mailbox::kSlots);
      applied += count;
      if (took && place == next) {
        fence_system();
        share.from[link].release(slot, turn);
        counter(share.totals->applied_from[link]).fetch_add_relaxed(count);
        counter(share.totals->applied).fetch_add_relaxed(count);
        took = false;
      }
    }
    for (bool waits = chosen && is_frame; most > 0 && crew.any(waits); --most) {
      const std::uint32_t next = crew.of_first(waits, slot);
      applied += apply_chunk(share, handlers, crew, mine, next);
      if (slot == next) waits = false;
    }
  }
  return applied;
}

#endif

}  // namespace esker::gpu
