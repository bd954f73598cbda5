// The progress kernel's part in requests that travel: it applies them and sends their replies.
#pragma once

#include <cstdint>
#include <esker/net/gpu/handler_calls.hpp>
#include <esker/net/gpu/handler_queue.hpp>
#include <esker/net/gpu/requests.hpp>

#if defined(ESKER_ON_GPU)

namespace esker::gpu {

/// In place of calls of a handler. Collective over active lanes of a progress kernel.
template <class ActiveLanes>
ESKER_HD void call_handler(const PeState& pe_state, const OneHandler<RequestCall>& /*handler*/,
                           const Messages& m, const ActiveLanes& /*active*/, const Position& mine) {
  HandlerContext context(pe_state, m.source, m.command.handler);
  const std::uint32_t bytes = operand_bytes(m.command.operand);
  const std::uint32_t reply_at = message_words(m.command) - 1;
  for (std::uint32_t i = mine.index; i < m.count; i += mine.total) {
    const std::uint64_t offset = m.offset(i);
    if (!is_inside(pe_state.heap, offset, bytes, bytes) &&
        !may_be_inside(pe_state, offset, bytes, bytes, m.source))
      continue;
    const Fetched fetched =
        fetch_any(m.command, pe_state.heap.base + offset, m.word(1, i), reply_at > 1 ? m.word(2, i) : 0);
    const ReplyMessage reply =
        reply_message(m.command, m.width, m.source, fetched, [&](std::uint32_t r) { return m.word(r, i); });
    detail::SenderAccess::post_words(context, reply.command, reply.width, reply.words);
  }
  context.count();
}

}  // namespace esker::gpu

#endif
