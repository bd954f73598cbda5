// Built-in operations on a GPU: messages become atomics on the heap.
#pragma once

#include <cstdint>
#include <esker/aggregator/operations.hpp>
#include <esker/device/gpu/heap_update.hpp>
#include <esker/device/group.hpp>
#include <esker/device/lane_group.hpp>
#include <esker/net/gpu/messages.hpp>
#include <esker/net/gpu/pe_state.hpp>
#include <esker/net/gpu/requests.hpp>
#include <type_traits>

#if defined(ESKER_ON_GPU)

namespace esker::gpu {

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

/// One message, of a command that the compiler knows, or else of any at the cost of the whole table: its
/// target and its value words.
ESKER_HD inline void apply_one(Command command, std::byte* target, std::uint64_t first,
                               std::uint64_t second) {
  with_operation<Signs::kMerged>(command, [=]<Operation O, class T>() {
    if constexpr (std::is_same_v<T, Bytes16>) {
      auto* const halves = GroupLane::in_global(reinterpret_cast<std::uint64_t*>(target));
      store(halves, first);
      store(halves + 1, second);
    } else {
      update<O>(GroupLane::in_global(reinterpret_cast<T*>(target)), first);
    }
  });
}
/// The same, once in a kernel.
ESKER_NOINLINE ESKER_HD inline void apply_any(Command command, std::byte* target, std::uint64_t first,
                                              std::uint64_t second) {
  apply_one(command, target, first, second);
}

/// A put with a signal; `signal` is its offset in the heap.
ESKER_HD inline void apply_signal(Command command, std::byte* heap, std::byte* target, std::uint64_t first,
                                  std::uint64_t second, std::uint64_t signal, std::uint64_t value) {
  apply_any({Operation::kPut, command.operand, 0}, target, first, second);
  fence_system();  // [signal]
  auto* const word =
      GroupLane::in_global(reinterpret_cast<unsigned long long*>(heap + (signal & kOffsetMask)));
  if (command.operation == Operation::kPutSetSignal)
    store(word, static_cast<unsigned long long>(value));
  else
    reduce_add(word, static_cast<unsigned long long>(value));
}

/// A lane's own message, whose call has been checked, to its own PE or to a peer whose heap it reaches.
/// Whether the compiler knows the command is the caller's to say.
template <bool kIsKnown>
ESKER_HD void apply_own(std::byte* heap, Command command, std::uint32_t width, const std::uint64_t* words) {
  std::byte* const target = heap + (words[0] & kOffsetMask);
  if (has_signal(command.operation)) {
    const std::uint64_t second = width > 4 ? words[2] : 0;
    return apply_signal(command, heap, target, words[1], second, words[width - 2], words[width - 1]);
  }
  const std::uint64_t first = width > 1 ? words[1] : 0, second = width > 2 ? words[2] : 0;
  if constexpr (kIsKnown) {
    apply_one(command, target, first, second);
  } else {
    apply_any(command, target, first, second);
  }
}

/// The same of a request: what its target held.
template <bool kIsKnown>
ESKER_HD Fetched fetch_own(std::byte* heap, Command command, std::uint32_t width,
                           const std::uint64_t* words) {
  std::byte* const target = heap + (words[0] & kOffsetMask);
  const std::uint64_t first = words[1], second = width > 2 ? words[2] : 0;  // of a request two words at least
  if constexpr (kIsKnown) return fetch_one(command, target, first, second);
  return fetch_any(command, target, first, second);
}

/// What most messages ask for: loops of their own. The rest of the table shares one, for the code's size.
template <Operation O, class T>
inline constexpr bool kIsFrequent = O == Operation::kInc || O == Operation::kAdd ||
                                    (O == Operation::kPut && (sizeof(T) == 4 || sizeof(T) == 8));

/// apply(target, value word, message) for each message, `AtOnce` a lane at a time: several loads are under
/// way before the first is used.
template <std::uint32_t AtOnce, bool kHasValue, class Apply>
ESKER_HD void for_each_message(const PeState& pe_state, const Messages& m, const Position& mine,
                               std::uint32_t bytes, const Apply& apply) {
  const HeapView heap = pe_state.heap;
  for (std::uint32_t first = mine.index; first < m.count; first += AtOnce * mine.total) {
    std::uint64_t offsets[AtOnce], words[AtOnce];
#pragma unroll
    for (std::uint32_t k = 0; k < AtOnce; ++k) {
      const std::uint32_t i = first + k * mine.total;
      offsets[k] = i < m.count ? m.offset(i) : 0;
      words[k] = i < m.count && kHasValue ? m.word(1, i) : 0;
    }
    std::uint32_t rest = 0;  // a bit for each that is not inside at first sight
#pragma unroll
    for (std::uint32_t k = 0; k < AtOnce; ++k) {
      const std::uint32_t i = first + k * mine.total;
      if (i >= m.count) break;
      if (is_inside(heap, offsets[k], bytes, bytes)) {
        apply(heap.base + offsets[k], words[k], i);
      } else {
        rest |= 1u << k;
      }
    }
    for (; rest != 0; rest &= rest - 1) {
      const std::uint32_t i = first + GroupLane::lowest_bit(rest) * mine.total;
      if (may_be_inside(pe_state, m.offset(i), bytes, bytes, m.source))
        apply(heap.base + m.offset(i), kHasValue ? m.word(1, i) : 0, i);
    }
  }
}

/// Messages of any built-in operation.
ESKER_NOINLINE ESKER_HD inline void apply_rest(const PeState& pe_state, Messages m, Position mine) {
  const std::uint32_t bytes = operand_bytes(m.command.operand);
  for_each_message<2, true>(pe_state, m, mine, bytes,
                            [&](std::byte* target, std::uint64_t word, std::uint32_t i) {
                              apply_any(m.command, target, word, bytes == 16 ? m.word(2, i) : 0);
                            });
}

/// Puts with signals.
ESKER_NOINLINE ESKER_HD inline void apply_signals(const PeState& pe_state, Messages m, Position mine) {
  const std::uint32_t bytes = operand_bytes(m.command.operand);
  for_each_message<2, true>(
      pe_state, m, mine, bytes, [&](std::byte* target, std::uint64_t word, std::uint32_t i) {
        const std::uint64_t signal = m.word(m.width - 2, i) & kOffsetMask;
        if (is_inside(pe_state.heap, signal, 8, 8) || may_be_inside(pe_state, signal, 8, 8, m.source))
          apply_signal(m.command, pe_state.heap.base, target, word, bytes == 16 ? m.word(2, i) : 0, signal,
                       m.word(m.width - 1, i));
      });
}

/// Applies all messages of a built-in operation. Collective over the active lanes, of which this one is
/// `mine`. Inlined: called, puts and active messages take 3 to 4 % longer.
ESKER_HD inline void apply_built_in(const PeState& pe_state, Messages m, Position mine) {
  if (has_signal(m.command.operation)) return apply_signals(pe_state, m, mine);
  with_operation<Signs::kMerged>(m.command, [&]<Operation O, class T>() {
    if constexpr (kIsFrequent<O, T>) {
      for_each_message<8, O != Operation::kInc>(
          pe_state, m, mine, sizeof(T), [](std::byte* target, std::uint64_t word, std::uint32_t) {
            update<O>(GroupLane::in_global(reinterpret_cast<T*>(target)), word);
          });
    } else {
      apply_rest(pe_state, m, mine);
    }
  });
}

/// The heap in which a lane may apply a message for `bin` itself, or null. In a peer's only what is one
/// instruction there: a loop would wait for the link each time.
ESKER_HD inline std::byte* heap_in_reach(const PeState& pe_state, std::uint32_t bin, Command command) {
  // Handlers run in progress kernels alone, and a reply is counted where it is applied.
  if (is_call(command) || command.operation == Operation::kReply) return nullptr;
  if (bin == kSelf) return pe_state.heap.base;
  if (bin == kNetwork || command.operation == Operation::kMin || command.operation == Operation::kMax)
    return nullptr;
  return pe_state.heap_of[bin];
}
/// The package of a message for `bin` that travels.
ESKER_HD inline std::uint32_t package_for(const PeState& pe_state, std::uint32_t bin) {
  return bin == kSelf ? pe_state.self_link : bin == kNetwork ? pe_state.links : bin;
}

}  // namespace esker::gpu

#endif
