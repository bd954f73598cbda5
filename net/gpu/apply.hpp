// Stage 4 on the device: packages of peers, frames of the network and messages to oneself become atomics
// and handler calls on the heap. Whoever waits, or has just sent, applies some.
#pragma once

#include <cstdint>
#include <esker/device/gpu/heap_update.hpp>
#include <esker/device/group.hpp>
#include <esker/device/lane_group.hpp>
#include <esker/device/launch.hpp>
#include <esker/net/gpu/pe_state.hpp>

namespace esker::gpu {

/// What a kernel can apply beside the built-in operations: nothing, or messages for one handler.
struct NoHandler {};
template <class Call>
struct OneHandler {
  std::uint32_t index;
  Call call;
};

#if defined(ESKER_ON_GPU)

struct PeStateCopy {
  std::uint64_t words[sizeof(PeState) / 8];
};
/// The group's own copy of what lanes share, in scratchpad: acquiring empties the cache that it would
/// otherwise stay in.
ESKER_HD inline const PeState& pe_state_here() {
  return reinterpret_cast<const PeState&>(GroupLane::scratch_of<PeStateCopy>());
}
/// Makes that copy. Collective over the group, once.
ESKER_HD inline const PeState& copy_pe_state(GroupLane& lane, const PeState* pe_state) {
  const auto* const from = reinterpret_cast<const std::uint64_t*>(pe_state);
  PeStateCopy& copy = GroupLane::scratch_of<PeStateCopy>();
  for (std::uint32_t i = lane.lane(); i < sizeof(PeState) / 8; i += lane.group_lanes())
    copy.words[i] = from[i];
  lane.group().sync();
  return pe_state_here();
}

/// Messages of one command: word r of message i is words[r * stride + i].
struct Messages {
  static constexpr bool kMany = true;
  Command command;
  std::uint32_t count;
  std::uint32_t stride;
  const std::uint64_t* words;
  std::uint32_t source;

  ESKER_HD std::byte* heap_base(const PeState& pe_state) const { return pe_state.heap.base; }
  ESKER_HD std::uint64_t word(std::uint32_t r, std::uint32_t i) const { return words[r * stride + i]; }
  ESKER_HD std::uint64_t offset(std::uint32_t i) const { return word(0, i) & kOffsetMask; }

  /// Whether an operation of `bytes` may be applied there, as far as this kernel has heard.
  ESKER_HD static bool is_inside(const HeapView& heap, std::uint64_t at, std::uint32_t bytes,
                                 std::uint32_t alignment) {
    return heap.bytes >= bytes && at <= heap.bytes - bytes && at % alignment == 0;
  }
  /// A PE that has come out of allocate() earlier may send to what this kernel has not heard of yet.
  ESKER_NOINLINE ESKER_HD static bool may_be_inside(const PeState& pe_state, std::uint64_t at,
                                                    std::uint32_t bytes, std::uint32_t alignment,
                                                    std::uint32_t source) {
    const std::uint64_t end = pe_state.words->heap_end.load_relaxed();
    if (is_inside({nullptr, end}, at, bytes, alignment)) return true;
    report_fault(pe_state, {Fault::kBadArrival, source, 0, 0, 0, at, bytes, "apply"});
    return false;
  }
};

/// One message of a lane's own to its own PE, or to a peer whose heap it reaches; its call has been checked.
struct OwnMessage {
  static constexpr bool kMany = false;
  Command command;
  const std::uint64_t* words;
  std::byte* heap;
  static constexpr std::uint32_t count = 1, source = 0;

  ESKER_HD std::byte* heap_base(const PeState&) const { return heap; }
  ESKER_HD std::uint64_t word(std::uint32_t r, std::uint32_t) const { return words[r]; }
  ESKER_HD std::uint64_t offset(std::uint32_t) const { return words[0] & kOffsetMask; }
  ESKER_HD static bool is_inside(const HeapView&, std::uint64_t, std::uint32_t, std::uint32_t) {
    return true;
  }
  ESKER_HD static bool may_be_inside(const PeState&, std::uint64_t, std::uint32_t, std::uint32_t,
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
ESKER_HD void update_all(const PeState& pe_state, const M& m, const Position& mine) {
  const HeapView heap = pe_state.heap;
  const auto apply = [&](std::uint64_t offset, std::uint64_t word) {
    update<O>(GroupLane::in_global(reinterpret_cast<T*>(m.heap_base(pe_state) + offset)), word);
  };
  // Several loads are under way before the first is used; fewer where few are expected, for the code's size.
  constexpr bool kOften = O == Operation::kPut || O == Operation::kInc || O == Operation::kAdd;
  constexpr std::uint32_t kAtOnce = !M::kMany ? 1 : kOften ? 8 : 2;
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
      if (m.may_be_inside(pe_state, m.offset(i), sizeof(T), sizeof(T), m.source))
        apply(m.offset(i), O != Operation::kInc ? m.word(1, i) : 0);
    }
  }
}

template <class M>
ESKER_HD void put_16(const PeState& pe_state, const M& m, const Position& mine) {
  for (std::uint32_t i = mine.index; i < m.count; i += mine.total) {
    const std::uint64_t offset = m.offset(i);
    if (!m.is_inside(pe_state.heap, offset, 16, 16) && !m.may_be_inside(pe_state, offset, 16, 16, m.source))
      continue;
    auto* const at = GroupLane::in_global(reinterpret_cast<std::uint64_t*>(m.heap_base(pe_state) + offset));
    store(at, m.word(1, i));
    store(at + 1, m.word(2, i));
  }
}

template <Operation O, class M>
ESKER_HD void update_integers(const PeState& pe_state, const M& m, const Position& mine) {
  constexpr bool kSigned = O == Operation::kMin || O == Operation::kMax;  // to the rest the sign is the same
  switch (m.command.operand) {
    case Operand::kInt32:
      return update_all<O, std::conditional_t<kSigned, std::int32_t, std::uint32_t>>(pe_state, m, mine);
    case Operand::kUint32:
      return update_all<O, std::uint32_t>(pe_state, m, mine);
    case Operand::kInt64:
      return update_all<O, std::conditional_t<kSigned, std::int64_t, std::uint64_t>>(pe_state, m, mine);
    default:
      return update_all<O, std::uint64_t>(pe_state, m, mine);
  }
}

template <Operation O, class M>
ESKER_HD void update_numbers(const PeState& pe_state, const M& m, const Position& mine) {
  switch (m.command.operand) {
    case Operand::kFloat:
      return update_all<O, float>(pe_state, m, mine);
    case Operand::kDouble:
      return update_all<O, double>(pe_state, m, mine);
    default:
      return update_integers<O>(pe_state, m, mine);
  }
}

template <class M>
ESKER_HD void put_all(const PeState& pe_state, const M& m, const Position& mine) {
  switch (m.command.operand) {
    case Operand::kBytes1:
      return update_all<Operation::kPut, std::uint8_t>(pe_state, m, mine);
    case Operand::kBytes2:
      return update_all<Operation::kPut, std::uint16_t>(pe_state, m, mine);
    case Operand::kBytes4:
      return update_all<Operation::kPut, std::uint32_t>(pe_state, m, mine);
    case Operand::kBytes16:
      return put_16(pe_state, m, mine);
    default:
      return update_all<Operation::kPut, std::uint64_t>(pe_state, m, mine);
  }
}

/// For whom a package is: 0, whoever applies; else a handler's progress kernel.
ESKER_HD constexpr std::uint32_t kind_of(Command command) {
  return command.operation == Operation::kActiveMessage ? command.handler + 1u : 0;
}
ESKER_HD constexpr std::uint32_t kind_of(NoHandler) { return 0; }
template <class Call>
ESKER_HD std::uint32_t kind_of(const OneHandler<Call>& handler) {
  return handler.index + 1;
}

/// A message of a package, to its handler.
template <class Call>
struct ArrivedMessage {
  void* target;
  std::uint64_t arguments[Call::kWords];
  ESKER_HD ArrivedMessage(const PeState& pe_state, const Messages& m, std::uint32_t message)
      : target{pe_state.heap.base + m.offset(message)} {
    for (std::uint32_t r = 1; r < Call::kWords; ++r) arguments[r - 1] = m.word(r, message);
  }
};
/// The lock of its ownership block. Of one handler at a time: each has progress kernels of its own.
template <class Call>
ESKER_HD DeviceAtomic<std::uint32_t>& ownership_lock(const PeState& pe_state, std::uint64_t offset) {
  return pe_state.ownership_locks[offset / Call::kOwnershipBytes % kOwnershipLocks];
}

/// Calls the handler for each message of a list, alone with respect to the ownership block of its target.
template <class Call>
ESKER_HD void call_handler_for_list(const PeState& pe_state, const OneHandler<Call>& handler,
                                    const Messages& m, std::uint32_t first, const OwnershipLists& lists,
                                    std::uint32_t list, HandlerContext& context) {
  const auto lock_of = [&](std::uint32_t i) { return &ownership_lock<Call>(pe_state, m.offset(first + i)); };
  DeviceAtomic<std::uint32_t>* held = nullptr;
  // One try or one call a step: lanes of the same wave may hold what this one wants.
  for (std::uint32_t i = lists.heads[list].load_relaxed(); i != OwnershipLists::kEnd;) {
    if (held == nullptr) {
      if constexpr (Call::kSaysWhatIsNeedless) {
        const ArrivedMessage<Call> message(pe_state, m, first + i);
        if (handler.call.is_needless(message.target, message.arguments)) {
          i = lists.next[i];
          continue;
        }
      }
      DeviceAtomic<std::uint32_t>* const lock = lock_of(i);
      std::uint32_t free = 0;
      if (lock->load_relaxed() == 0 && lock->compare_exchange_acquire(free, 1)) held = lock;
    }
    if (held != nullptr) {
      const ArrivedMessage<Call> message(pe_state, m, first + i);
      handler.call(context, message.target, message.arguments);
      i = lists.next[i];
      if (i == OwnershipLists::kEnd || lock_of(i) != held) {
        held->store_release(0);
        held = nullptr;
      }
    } else {
      GroupLane::yield();
    }
  }
}

/// Whether a message's target may be there. Tells if not.
template <class Call>
ESKER_HD bool has_target(const PeState& pe_state, const Messages& m, std::uint32_t i) {
  const std::uint64_t offset = m.offset(i);
  return m.is_inside(pe_state.heap, offset, Call::kTargetBytes, Call::kTargetAlignment) ||
         m.may_be_inside(pe_state, offset, Call::kTargetBytes, Call::kTargetAlignment, m.source);
}

/// Calls the handler for each message. Collective over a crew of a progress kernel. Each is a lane's, while
/// its ownership block is free. Those of ownership blocks that are not become lists, each of them a lane's,
/// which takes an ownership block once: where all go to few, waves would spend their time on taking turns.
template <class Call, class ActiveLanes>
ESKER_HD void call_handler(const PeState& pe_state, const OneHandler<Call>& handler, const Messages& m,
                           const ActiveLanes& active, const Position& mine) {
  OwnershipLists& lists = GroupLane::scratch_of<ProgressLists>().of_wave[GroupLane::wave_of(own_lane())];
  HandlerContext context(pe_state, m.source, m.command.handler);
  for (std::uint32_t first = 0; first < m.count; first += OwnershipLists::kMessages) {
    const std::uint32_t left = m.count - first;
    const std::uint32_t count = left < OwnershipLists::kMessages ? left : OwnershipLists::kMessages;
    for (std::uint32_t list = mine.index; list < OwnershipLists::kLists; list += mine.total)
      lists.heads[list].store_relaxed(OwnershipLists::kEnd);
    active.sync();
    for (std::uint32_t i = mine.index; i < count; i += mine.total) {
      if (!has_target<Call>(pe_state, m, first + i)) continue;
      const std::uint64_t offset = m.offset(first + i);
      const ArrivedMessage<Call> message(pe_state, m, first + i);
      if (handler.call.is_needless(message.target, message.arguments)) continue;
      DeviceAtomic<std::uint32_t>& lock = ownership_lock<Call>(pe_state, offset);
      std::uint32_t free = 0;
      if (lock.compare_exchange_acquire(free, 1)) {  // mostly: a look before it would cost as much again
        handler.call(context, message.target, message.arguments);
        lock.store_release(0);
      } else {
        const auto block = static_cast<std::uint32_t>(offset / Call::kOwnershipBytes);
        lists.push(block * 0x9e3779b1u >> 26, i);
      }
    }
    active.sync();
    for (std::uint32_t list = mine.index; list < OwnershipLists::kLists; list += mine.total)
      call_handler_for_list(pe_state, handler, m, first, lists, list, context);
    active.sync();
  }
  context.count();
}

/// The same of a handler that owns nothing.
template <class Call, class ActiveLanes>
requires(Call::kOwnershipBytes == 0) ESKER_HD
    void call_handler(const PeState& pe_state, const OneHandler<Call>& handler, const Messages& m,
                      const ActiveLanes& /*active*/, const Position& mine) {
  HandlerContext context(pe_state, m.source, m.command.handler);
  for (std::uint32_t i = mine.index; i < m.count; i += mine.total) {
    if (!has_target<Call>(pe_state, m, i)) continue;
    const ArrivedMessage<Call> message(pe_state, m, i);
    if (!handler.call.is_needless(message.target, message.arguments))
      handler.call(context, message.target, message.arguments);
  }
  context.count();
}

/// Applies all messages of a built-in operation. Collective over a crew, of which this lane is `mine`.
template <class M>
ESKER_HD void apply_built_in(const PeState& pe_state, const M& m, const Position& mine) {
  switch (m.command.operation) {
    case Operation::kPut:
      return put_all(pe_state, m, mine);
    case Operation::kInc:
      return update_integers<Operation::kInc>(pe_state, m, mine);
    case Operation::kAdd:
      return update_numbers<Operation::kAdd>(pe_state, m, mine);
    case Operation::kMin:
      return update_numbers<Operation::kMin>(pe_state, m, mine);
    case Operation::kMax:
      return update_numbers<Operation::kMax>(pe_state, m, mine);
    case Operation::kAnd:
      return update_integers<Operation::kAnd>(pe_state, m, mine);
    case Operation::kOr:
      return update_integers<Operation::kOr>(pe_state, m, mine);
    case Operation::kXor:
      return update_integers<Operation::kXor>(pe_state, m, mine);
    case Operation::kActiveMessage:
      return;
  }
}

/// A lane's own message, of a command that the compiler knows or not.
ESKER_HD inline void apply_own(const PeState& pe_state, std::byte* heap, Command command,
                               const std::uint64_t* words) {
  apply_built_in(pe_state, OwnMessage{command, words, heap}, Position{0, 1, 0});
}

/// The heap in which a lane may apply a message for `bin` itself, or null. In a peer's only what is one
/// instruction there: a loop would wait for the link each time.
ESKER_HD inline std::byte* heap_in_reach(const PeState& pe_state, std::uint32_t bin, Operation operation) {
  if (operation == Operation::kActiveMessage) return nullptr;  // handlers run in progress kernels alone
  if (bin == kSelf) return pe_state.heap.base;
  if (bin == kNetwork || operation == Operation::kMin || operation == Operation::kMax) return nullptr;
  return pe_state.heap_of[bin];
}
/// The package of a message for `bin` that travels.
ESKER_HD inline std::uint32_t package_for(const PeState& pe_state, std::uint32_t bin) {
  return bin == kSelf ? pe_state.self_link : bin == kNetwork ? pe_state.links : bin;
}

/// Places where messages arrive: the slots of each used link's mailbox, then those of frames.
ESKER_HD inline std::uint32_t slot_places(const PeState& pe_state) {
  return pe_state.used_links() * Mailbox::kSlots;
}
ESKER_HD inline std::uint32_t places(const PeState& pe_state) {
  return slot_places(pe_state) + (pe_state.frames == nullptr ? 0 : kFrames);
}

/// In a package's kind: handlers have sent what is in it, and a progress kernel has sent it on.
inline constexpr std::uint32_t kSentOn = 1u << 15;
static_assert(kMaxHandlers < kSentOn);

/// The shard that this lane's wave uses.
ESKER_HD inline std::uint32_t handler_shard_here() {
  constexpr std::uint32_t kWaves = ProgressPolicy::kGroupLanes / 32;
  return (static_cast<std::uint32_t>(own_group()) * kWaves + GroupLane::wave_of(own_lane())) % kHandlerShards;
}

/// Room for what handlers send, which never wait: so they are not called while much of it waits to be sent
/// on. Each is taken to send one message. Those that send more have the other half of the queue.
class HandlersRoom {
 public:
  ESKER_HD explicit HandlersRoom(const PeState& pe_state)
      : queue_{pe_state.handler_queue(handler_shard_here())},
        calls_{&pe_state.handler_shards[handler_shard_here()].calls} {}

  ESKER_HD bool try_take(std::uint32_t messages) const {
    const auto has = [&](std::uint32_t calls) {
      return queue_.was_occupied() + calls + messages <= kHandlerSlots / 2;
    };
    if (!has(calls_->load_relaxed())) return false;
    if (has(calls_->fetch_add_relaxed(messages))) return true;
    give_back(messages);
    return false;
  }
  ESKER_HD void give_back(std::uint32_t messages) const { (void)calls_->fetch_add_relaxed(0u - messages); }

 private:
  HandlerQueue queue_;
  DeviceAtomic<std::uint32_t>* calls_;
};

/// What a lane has taken from a place.
struct Taken {
  std::uint64_t turn;
  std::uint32_t room;  // of HandlersRoom
};

/// One place, as a crew and the lane that takes from it see it.
class Place {
 public:
  ESKER_HD Place(const PeState& pe_state, std::uint32_t place)
      : link_{place / Mailbox::kSlots},
        slot_{place % Mailbox::kSlots},
        is_frame_{place >= slot_places(pe_state)} {}

  /// Whether it is worth taking from.
  ESKER_HD bool looks_ready(const PeState& pe_state) const {
    if (!is_frame_) return pe_state.from[link_].looks_full(slot_);
    const std::uint64_t seen = pe_state.frame_turns[slot_].cursor.load_relaxed();
    return FrameTurn::next(seen) < FrameTurn::chunks(seen);
  }
  /// The kind of what stands there: Mailbox::kNoKind if there is nothing. Others may take it meanwhile.
  ESKER_HD std::uint32_t kind_here(const PeState& pe_state) const {
    if (!is_frame_) {
      const std::uint32_t kind = pe_state.from[link_].looks_full_of(slot_);
      return kind == Mailbox::kNoKind ? kind : kind & ~kSentOn;
    }
    if (!looks_ready(pe_state)) return Mailbox::kNoKind;
    const std::uint64_t seen = pe_state.frame_turns[slot_].cursor.load_acquire();  // [frame]
    if (FrameTurn::next(seen) >= FrameTurn::chunks(seen)) return Mailbox::kNoKind;
    return kind_of(Command::from_word(chunk(pe_state, seen).command));
  }
  /// A package, or a chunk of a frame, that `handlers` can apply.
  template <class Handlers>
  ESKER_HD bool try_take(const PeState& pe_state, const Handlers& handlers, Taken& taken) const {
    constexpr bool kCalls = !std::is_same_v<Handlers, NoHandler>;
    taken.room = 0;
    if (!is_frame_) {
      const Mailbox& box = pe_state.from[link_];
      // What a progress kernel has sent on is applied whatever waits here, or two PEs would wait for each
      // other.
      if (box.try_take(slot_, kCalls ? kind_of(handlers) | kSentOn : 0, taken.turn)) return true;
      if constexpr (!kCalls) return false;
      std::uint64_t seen = 0;
      if (!box.sees(slot_, kind_of(handlers), seen)) return false;
      // If another takes it meanwhile, it is some number, and what was seen is gone.
      const std::uint32_t count = box.header(slot_).count;
      return with_room(pe_state, count, taken, [&] { return box.try_take_seen(slot_, seen, taken.turn); });
    }
    FrameTurn& frame = pe_state.frame_turns[slot_];
    taken.turn = frame.cursor.load_acquire();  // [frame]
    if (FrameTurn::next(taken.turn) >= FrameTurn::chunks(taken.turn)) return false;
    const auto take = [&] { return frame.cursor.compare_exchange_acquire(taken.turn, taken.turn + 1); };
    const Chunk c = chunk(pe_state, taken.turn);
    const std::uint32_t kind = kind_of(Command::from_word(c.command));
    // In the one-node projection a frame is this PE's own buffer, which sending on may need.
    const bool is_projected = c.source == pe_state.pe && pe_state.bin(pe_state.pe) == kNetwork;
    if (kind == 0 || (kind == kind_of(handlers) && is_projected)) return take();
    return kind == kind_of(handlers) && with_room(pe_state, c.count, taken, take);
  }
  ESKER_HD Messages messages(const PeState& pe_state, std::uint64_t turn) const {
    if (!is_frame_) {
      const Mailbox& box = pe_state.from[link_];
      const Mailbox::Header header = box.header(slot_);
      return {Command::from_word(header.command), header.count, Mailbox::columns(header.words),
              box.payload(slot_), pe_state.pe_of[link_]};
    }
    const Chunk c = chunk(pe_state, turn);
    const auto* const words = reinterpret_cast<const std::uint64_t*>(frame(pe_state) + c.at);
    return {Command::from_word(c.command), c.count, c.stride, words, c.source};
  }
  /// Of its messages `count` are applied.
  ESKER_HD void give_back(const PeState& pe_state, const Taken& taken, std::uint32_t count) const {
    const std::uint64_t turn = taken.turn;
    if (taken.room > 0) HandlersRoom(pe_state).give_back(taken.room);
    fence_system();  // quiet: the updates come before applied_from, or the frame's end, is seen
    counter(pe_state.totals->applied).fetch_add_relaxed(count);
    if (!is_frame_) {
      pe_state.from[link_].release(slot_, turn);
      counter(pe_state.totals->applied_from[link_]).fetch_add_relaxed(count);
      return;
    }
    FrameTurn& frame = pe_state.frame_turns[slot_];
    if (frame.finished.fetch_add_acq_rel(1) + 1 != FrameTurn::chunks(turn)) return;
    frame.finished.store_relaxed(0);
    pe_state.host->frame_done[slot_].store_release(FrameTurn::generation(turn));  // [frame]
  }

 private:
  /// Takes, if there is room for what `count` handlers send.
  template <class Take>
  ESKER_HD static bool with_room(const PeState& pe_state, std::uint32_t count, Taken& taken,
                                 const Take& take) {
    const HandlersRoom room(pe_state);
    if (!room.try_take(count)) return false;
    taken.room = count;
    if (take()) return true;
    room.give_back(count);
    return false;
  }
  ESKER_HD const std::byte* frame(const PeState& pe_state) const {
    return pe_state.frames + slot_ * pe_state.frame_bytes;
  }
  ESKER_HD Chunk chunk(const PeState& pe_state, std::uint64_t turn) const {
    const auto* const end = reinterpret_cast<const Chunk*>(frame(pe_state) + pe_state.frame_at);
    return end[-1 - static_cast<std::int64_t>(FrameTurn::next(turn))];
  }

  std::uint32_t link_;
  std::uint32_t slot_;  // of the mailbox, or of the frames
  bool is_frame_;
};

/// What a crew has come to, and what a lane of it has seen.
struct Applied {
  std::uint32_t messages;
  std::uint64_t waiting;  // waiting_bit()s of what a progress kernel has found and left
};

/// Looks at `looks` places, from `start` on, each lane at one at a time, and applies what stands in up to
/// `most` of them; crews with another `salt` prefer others. Collective over a crew. Waits for nobody.
///
/// Not inlined, since a kernel waits in several places, and all by value: what has an address stands in
/// memory, and the cache in front of it is emptied by every acquire of the processor.
template <class Handlers, class ActiveLanes>
ESKER_NOINLINE ESKER_HD Applied apply_some(const PeState& pe_state, Handlers handlers, ActiveLanes active,
                                           std::uint32_t salt, std::uint32_t start, std::uint32_t looks,
                                           std::uint32_t most) {
  const Position mine = active.position_among(true);
  const std::uint32_t all = places(pe_state);
  constexpr bool kCalls = !std::is_same_v<Handlers, NoHandler>;
  Applied applied{};
  for (std::uint32_t looked = 0; looked < looks && most > 0; looked += mine.total) {
    const std::uint32_t at = (start + looked + mine.index) % all;
    const Place place(pe_state, at);
    bool ready = looked + mine.index < looks;
    [[maybe_unused]] std::uint32_t kind = Mailbox::kNoKind;
    if constexpr (kCalls) {
      if (ready) kind = place.kind_here(pe_state);
      ready = kind == 0 || kind == kind_of(handlers);
    } else {
      ready = ready && place.looks_ready(pe_state);
    }
    const Position rank = active.position_among(ready);
    Taken taken{};
    bool took = ready && (rank.index + salt) % rank.total < most && place.try_take(pe_state, handlers, taken);
    if constexpr (kCalls) {
      if (!took && kind != 0 && kind != Mailbox::kNoKind) applied.waiting |= waiting_bit(kind);
    }
    if (rank.total == 0) continue;
    for (; active.any(took); --most) {
      const std::uint32_t next = active.of_first(took, at);
      active.sync();  // what the lane that took it acquired, the crew may read
      const Messages messages = Place(pe_state, next).messages(pe_state, active.of_first(took, taken.turn));
      if constexpr (kCalls) {
        if (messages.command.operation == Operation::kActiveMessage) {
          call_handler(pe_state, handlers, messages, active, mine);
        } else {
          apply_built_in(pe_state, messages, mine);
        }
      } else {
        apply_built_in(pe_state, messages, mine);
      }
      active.sync();
      applied.messages += messages.count;
      if (took && at == next) {
        place.give_back(pe_state, taken, messages.count);
        took = false;
      }
    }
  }
  return applied;
}

#endif

}  // namespace esker::gpu
