// Frames and gathers through memory that the PEs of a host share, in place of another transport's.
#pragma once

#include <cstdint>
#include <memory>

#include <esker/net/transport.hpp>

namespace esker::shared {

/// Whether a PE shares memory: not; where all of the job can; or it is an error if one cannot.
enum class Wish : std::uint8_t { kOff, kIfAllCan, kMust };

/// Collective over the job, whatever each PE wishes: all PEs, or none, go on with shared memory.
/// `between_hosts` is a transport on which nothing is under way. It stays what frames to other hosts go by,
/// gathers of a job of several hosts, and whatever else a transport does. Where none shares, name() says why.
///
/// Each PE has memory without a name, which its peers open by its process: none of it outlives the processes.
///
/// Errors. Error{kNetwork}, on every PE: one must share, and one does not or cannot; says which and why. On
///         the PEs that are left: one of this host has died. The transport is closed then.
std::unique_ptr<Transport> connect(std::unique_ptr<Transport> between_hosts, TransportLimits limits,
                                   Wish wish);

}  // namespace esker::shared
