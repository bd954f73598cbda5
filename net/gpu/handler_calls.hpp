// Handlers on a GPU: their calls, the locks of ownership blocks, and the lists of messages that wait
// for one.
#pragma once

#include <cstdint>
#include <esker/device/group.hpp>
#include <esker/device/hash.hpp>
#include <esker/device/lane_group.hpp>
#include <esker/device/launch.hpp>
#include <esker/net/gpu/messages.hpp>
#include <esker/net/gpu/pe_state.hpp>
#include <esker/net/gpu/requests.hpp>
#include <type_traits>

namespace esker::gpu {

/// What a kernel can apply beside the built-in operations: nothing, or messages for one handler.
struct NoHandler {};
template <class Call>
struct OneHandler {
  std::uint32_t index;
  Call call;
};

/// Whether these are the progress kernels of requests.
template <class Handlers>
inline constexpr bool kAnswers = std::is_same_v<Handlers, OneHandler<RequestCall>>;

#if defined(ESKER_ON_GPU)

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
  return is_inside(pe_state.heap, offset, Call::kTargetBytes, Call::kTargetAlignment) ||
         may_be_inside(pe_state, offset, Call::kTargetBytes, Call::kTargetAlignment, m.source);
}

/// Calls the handler for each message. Collective over active lanes of a progress kernel. A lane calls it for
/// a message whose ownership block is free. Messages whose blocks are not become lists. A lane works through
/// a list and takes each ownership block once: where all messages go to few blocks, waves would spend their
/// time on taking turns.
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
      GroupLane::prefetch(pe_state.heap.base + offset);  // while the lock is on its way
      const ArrivedMessage<Call> message(pe_state, m, first + i);
      if (handler.call.is_needless(message.target, message.arguments)) continue;
      DeviceAtomic<std::uint32_t>& lock = ownership_lock<Call>(pe_state, offset);
      std::uint32_t free = 0;
      if (lock.compare_exchange_acquire(free, 1)) {  // mostly: a load before it would cost as much again
        handler.call(context, message.target, message.arguments);
        lock.store_release(0);
      } else {
        const auto block = static_cast<std::uint32_t>(offset / Call::kOwnershipBytes);
        lists.push(hash32<OwnershipLists::kListBits>(block), i);
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

#endif

}  // namespace esker::gpu
