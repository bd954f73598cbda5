// Requests of packages: a progress kernel applies them and sends their replies.
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
  for (std::uint32_t i = mine.index; i < m.count; i += mine.total) {
    const ReplyMessage reply = apply_request(pe_state, m, i);
    detail::SenderAccess::post_words(context, reply.command, reply.width, reply.words);
  }
  context.count();
}

}  // namespace esker::gpu

#endif
