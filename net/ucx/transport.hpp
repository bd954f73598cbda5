// Frames by UCX. This header includes no UCX header, so that callers need none.
#pragma once

#include <memory>

#include <esker/net/connecting.hpp>
#include <esker/net/transport.hpp>

namespace esker::ucx {

/// Collective over the job, whatever each PE wishes: frames of all PEs, or of none, go by UCX. `beside` is a
/// transport on which nothing is under way. It stays what gathers go by, what finds processes and dead peers,
/// aborts and ends; it carries no frames. Where not all use UCX it is what this returns.
///
/// UCX is set by its own variables: ESKER_UCX_TLS is for this use alone, UCX_TLS for a program's own use too.
///
/// Errors. Error{kNetwork}, on every PE: one must use UCX, and one does not or cannot; says which and why. On
///         the PEs that are left: one has died. `beside` is closed then.
std::unique_ptr<Transport> connect(std::unique_ptr<Transport> beside, TransportLimits limits, Wish wish);

}  // namespace esker::ucx
