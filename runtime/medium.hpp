// What a Runtime is connected by.
#pragma once

#include <functional>
#include <memory>

#include <esker/net/transport.hpp>

namespace esker::detail {

/// How to connect, and whether a thread of the runtime's own may do it. Tests construct a Runtime from one.
struct Medium {
  using Connect = std::function<std::unique_ptr<Transport>(const TransportLimits&)>;
  Connect connect;  // called by the thread that will own the transport
  bool own_thread = true;
};

}  // namespace esker::detail
