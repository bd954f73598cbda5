// Frames by UCX. This header includes no UCX header, so that callers need none.
#pragma once

#include <cstddef>
#include <memory>

#include <esker/net/transport.hpp>

namespace esker::ucx {

/// Bytes of a frame that travels in its message. Others are announced, which takes a way forth and back.
inline constexpr std::size_t kSmallBytes = 8 << 10;

/// Collective over the job. Frames go by UCX, if `wanted`: else this returns `beside`, on which nothing may
/// be under way. That transport stays what gathers go by, what finds processes and dead peers, aborts and
/// ends. It carries no frames, and needs no receives.
///
/// UCX is set by its own variables; ESKER_UCX_TLS is for this use alone, UCX_TLS for a program's own too.
///
/// Errors. Error{kNetwork}, on every PE: it is wanted on some PEs only, or one cannot use UCX; says which and
/// why.
///         On the PEs that are left: one has died. `beside` is closed then.
std::unique_ptr<Transport> connect(std::unique_ptr<Transport> beside, TransportLimits limits, bool wanted,
                                   std::size_t small_bytes = kSmallBytes);

}  // namespace esker::ucx
