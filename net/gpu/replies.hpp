// Requests of frames: replies are written where the host sends them from.
#pragma once

#include <cstdint>
#include <esker/aggregator/command.hpp>
#include <esker/device/gpu/heap_update.hpp>
#include <esker/device/group.hpp>
#include <esker/device/lane_group.hpp>
#include <esker/net/gpu/messages.hpp>
#include <esker/net/gpu/pe_state.hpp>
#include <esker/net/gpu/requests.hpp>

#if defined(ESKER_ON_GPU)

namespace esker::gpu {

/// Where the replies to some requests go: word r of reply i is words[r * stride + i].
struct ReplyRows {
  std::uint64_t* words;
  std::uint32_t stride;
};

/// What most requests are, and a wave applies several at a time: of 8 bytes, their replies to an address.
ESKER_HD constexpr bool is_frequent_request(Command command) {
  return command.handler == 0 && operand_bytes(command.operand) == 8 && command.operand != Operand::kDouble &&
         (command.operation == Operation::kGet || command.operation == Operation::kFetchInc ||
          command.operation == Operation::kFetchAdd || command.operation == Operation::kCompareSwap);
}

/// Frequent ones, some a lane at a time: they are under way together.
ESKER_HD inline void answer_frequent(const PeState& pe_state, const Messages& m, const ReplyRows& replies,
                                     const Position& mine) {
  constexpr std::uint32_t kAtOnce = 4, kBytes = 8;
  const Operation operation = m.command.operation;
  const RequestAddresses addresses(m);
  const std::uint32_t operands_end = addresses.operands_end();
  for (std::uint32_t first = mine.index; first < m.count; first += kAtOnce * mine.total) {
    std::uint64_t offsets[kAtOnce], operands[kAtOnce], seconds[kAtOnce], values[kAtOnce] = {};
#pragma unroll
    for (std::uint32_t k = 0; k < kAtOnce; ++k) {
      const std::uint32_t i = first + k * mine.total;
      const bool is_there = i < m.count;
      offsets[k] = is_there ? addresses.target(i) : 0;
      operands[k] = is_there && operands_end > 1 ? m.word(1, i) : 1;
      seconds[k] = is_there && operands_end > 2 ? m.word(2, i) : 0;
    }
    std::uint32_t inside = 0;  // a bit each
#pragma unroll
    for (std::uint32_t k = 0; k < kAtOnce; ++k) {
      if (first + k * mine.total >= m.count) break;
      if (is_inside(pe_state.heap, offsets[k], kBytes, kBytes) ||
          may_be_inside(pe_state, offsets[k], kBytes, kBytes, m.source))
        inside |= 1u << k;
    }
    const auto each = [&](const auto& apply) {
#pragma unroll
      for (std::uint32_t k = 0; k < kAtOnce; ++k) {
        if ((inside >> k & 1) == 0) continue;
        values[k] =
            apply(GroupLane::in_global(reinterpret_cast<std::uint64_t*>(pe_state.heap.base + offsets[k])), k);
      }
    };
    if (operation == Operation::kGet) {
      each([](std::uint64_t* at, std::uint32_t) { return fetch<Operation::kGet>(at, 0, 0); });
    } else if (operation == Operation::kCompareSwap) {
      each([&](std::uint64_t* at, std::uint32_t k) {
        return fetch<Operation::kCompareSwap>(at, operands[k], seconds[k]);
      });
    } else {
      each([&](std::uint64_t* at, std::uint32_t k) {
        return fetch<Operation::kFetchAdd>(at, operands[k], 0);
      });
    }
#pragma unroll
    for (std::uint32_t k = 0; k < kAtOnce; ++k) {
      const std::uint32_t i = first + k * mine.total;
      if (i >= m.count) break;
      replies.words[i] = addresses.reply_to(i);
      replies.words[replies.stride + i] = values[k];
    }
  }
}

/// Applies requests and writes their replies. Collective over the active lanes, of which this one is `mine`.
ESKER_NOINLINE ESKER_HD inline void answer(const PeState& pe_state, Messages m, ReplyRows replies,
                                           Position mine) {
  if (is_frequent_request(m.command)) {
    answer_frequent(pe_state, m, replies, mine);
  } else {
    for (std::uint32_t i = mine.index; i < m.count; i += mine.total) {
      const ReplyMessage reply = apply_request(pe_state, m, i);
      replies.words[i] = reply.words[0] & kOffsetMask;
      for (std::uint32_t r = 1; r < reply.width; ++r) replies.words[r * replies.stride + i] = reply.words[r];
    }
  }
}

}  // namespace esker::gpu

#endif
