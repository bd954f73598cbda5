// Frames and gathers through memory that the PEs of a host share, in place of another transport's.
#pragma once

#include <functional>
#include <memory>

#include <esker/net/connecting.hpp>
#include <esker/net/transport.hpp>

namespace esker::shared {

/// What goes in place of a transport that PEs of a host share no memory beside.
using Otherwise = std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport>)>;

/// Collective over the job, whatever each PE wishes: all PEs, or none, go on with shared memory.
/// `between_hosts` is a transport on which nothing is under way. It stays what frames to other hosts go by,
/// gathers of a job of several hosts, and whatever else a transport does. Where none shares, `otherwise`
/// takes it, if that is given, and name() says why none does.
///
/// Each PE has memory without a name, which its peers open by its process: none of it outlives the processes.
///
/// Errors. Error{kNetwork}, on every PE: one must share, and one does not or cannot; says which and why. On
///         the PEs that are left: one of this host has died. The transport is closed then.
std::unique_ptr<Transport> connect(std::unique_ptr<Transport> between_hosts, TransportLimits limits,
                                   Wish wish, const Otherwise& otherwise = {});

}  // namespace esker::shared
