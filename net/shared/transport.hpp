// Frames and gathers through memory that the PEs of a host share, in place of another transport's.
#pragma once

#include <memory>
#include <string>

#include <esker/net/transport.hpp>

namespace esker::shared {

/// Collective over the job: all PEs, or none, go on with what this returns. `between_hosts` is a transport on
/// which nothing is under way. It stays what frames to other hosts go by, gathers of a job of several hosts,
/// and whatever else a transport does.
///
/// Each PE has memory without a name, which its peers open by its process: none of it outlives the processes.
///
/// Returns `between_hosts` itself where a PE cannot open a peer's memory. Then `why_not`, if it is not null,
/// says why. Throws Error{kNetwork}: a PE has died, or does not come.
std::unique_ptr<Transport> connect(std::unique_ptr<Transport> between_hosts, TransportLimits limits,
                                   std::string* why_not);

}  // namespace esker::shared
