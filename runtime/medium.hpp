// How a PE reaches the others.
#pragma once

#include <functional>
#include <memory>

#include <esker/net/transport.hpp>
#include <esker/runtime/config.hpp>

namespace esker {

/// How to connect, and whether a thread of our own may do it.
struct Medium {
  std::function<std::unique_ptr<Transport>(const TransportLimits&)> connect;
  bool own_thread;
};

/// MPI under a launcher or where the program has initialised it, else one PE over loopback.
/// Error{kConfiguration} if an earlier Runtime has used up MPI, or this process is one of many that a
/// launcher has started and the medium has but one PE.
Medium choose_medium(const Config& config);

}  // namespace esker
