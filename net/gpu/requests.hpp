// Requests on a GPU: atomics on the heap that bring back what was there.
#pragma once

#include <cstdint>
#include <esker/aggregator/operations.hpp>
#include <esker/device/gpu/heap_update.hpp>
#include <esker/device/group.hpp>
#include <esker/net/gpu/messages.hpp>
#include <esker/net/gpu/pe_state.hpp>
#include <type_traits>

namespace esker::gpu {

/// The handler whose progress kernels apply requests that travel. Replies to those of packages go the way of
/// what handlers send.
struct RequestCall {};

#if defined(ESKER_ON_GPU)

/// What the target held; 16 bytes are two words.
struct Fetched {
  std::uint64_t words[2];
};

template <Operation O, class T>
ESKER_HD std::uint64_t fetch(T* at, std::uint64_t first, std::uint64_t second) {
  T old;
  if constexpr (O == Operation::kGet) {
    old = load(at);
  } else if constexpr (std::is_floating_point_v<T>) {
    old = atomicAdd_system(at, detail::from_word<T>(first));
  } else {
    using U = Unsigned<T>;
    auto* const word = reinterpret_cast<U*>(at);
    const auto value = static_cast<U>(first);
    U found = 0;
    if constexpr (O == Operation::kFetchInc) found = atomicAdd_system(word, U{1});
    if constexpr (O == Operation::kFetchAdd) found = atomicAdd_system(word, value);
    if constexpr (O == Operation::kFetchAnd) found = atomicAnd_system(word, value);
    if constexpr (O == Operation::kFetchOr) found = atomicOr_system(word, value);
    if constexpr (O == Operation::kFetchXor) found = atomicXor_system(word, value);
    if constexpr (O == Operation::kSwap) found = atomicExch_system(word, value);
    if constexpr (O == Operation::kCompareSwap) found = atomicCAS_system(word, value, static_cast<U>(second));
    old = static_cast<T>(found);
  }
  std::uint64_t result = 0;
  __builtin_memcpy(&result, &old, sizeof old);
  return result;
}

/// One request, of a command that the compiler knows, or else of any at the cost of the whole table.
ESKER_HD inline Fetched fetch_one(Command command, std::byte* target, std::uint64_t first,
                                  std::uint64_t second) {
  return with_request(command, [=]<Operation O, class T>() -> Fetched {
    if constexpr (std::is_same_v<T, Bytes16>) {
      auto* const halves = GroupLane::in_global(reinterpret_cast<std::uint64_t*>(target));
      return {{load(halves), load(halves + 1)}};
    } else {
      return {{fetch<O>(GroupLane::in_global(reinterpret_cast<T*>(target)), first, second), 0}};
    }
  });
}
/// The same, once in a kernel.
ESKER_NOINLINE ESKER_HD inline Fetched fetch_any(Command command, std::byte* target, std::uint64_t first,
                                                 std::uint64_t second) {
  return fetch_one(command, target, first, second);
}

/// The message that a request's reply is.
struct ReplyMessage {
  Command command;
  std::uint32_t width;
  std::uint64_t words[kMaxMessageWords];
};

/// To PE `pe`. `word(r)` is word r of the request, which has `width`.
template <class Word>
ESKER_HD ReplyMessage reply_message(Command request, std::uint32_t width, std::uint32_t pe,
                                    const Fetched& fetched, const Word& word) {
  ReplyMessage reply;
  const std::uint32_t at = message_words(request) - 1;  // of the word that says where the reply goes
  const std::uint32_t bytes = operand_bytes(request.operand), filled = bytes / 8;
  reply.command = reply_to(request);
  reply.words[0] = address_word(pe, word(at) & kOffsetMask);
  reply.words[1] = fetched.words[0];
  reply.words[2] = fetched.words[1];
  reply.width = reply_words(request, width);
  if (request.handler == 0) return reply;
  for (std::uint32_t r = 1 + filled, from = at + 1; from < width; ++r, ++from) reply.words[r] = word(from);
  if (filled == 0) {  // in the low bytes of the first word
    const std::uint64_t mask = (std::uint64_t{1} << 8 * bytes) - 1;
    reply.words[1] = (reply.words[1] & ~mask) | (fetched.words[0] & mask);
  }
  return reply;
}

/// Applies request i of those, of any command, and makes its reply: of zeros, where its target is outside.
ESKER_HD inline ReplyMessage apply_request(const PeState& pe_state, const Messages& m, std::uint32_t i) {
  const std::uint32_t bytes = operand_bytes(m.command.operand);
  const RequestAddresses addresses(m);
  const std::uint32_t reply_at = addresses.operands_end();
  const std::uint64_t offset = addresses.target(i);
  Fetched fetched{};
  if (is_inside(pe_state.heap, offset, bytes, bytes) ||
      may_be_inside(pe_state, offset, bytes, bytes, m.source)) {
    const auto operand = [&](std::uint32_t r) { return r < reply_at ? m.word(r, i) : 0; };
    fetched = fetch_any(m.command, pe_state.heap.base + offset, operand(1), operand(2));
  }
  return reply_message(m.command, m.width, m.source, fetched,
                       [&](std::uint32_t r) { return r == reply_at ? addresses.reply_to(i) : m.word(r, i); });
}

#endif

}  // namespace esker::gpu
