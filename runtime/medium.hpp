// How a PE reaches the others.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <esker/config.hpp>
#include <esker/net/transport.hpp>

namespace esker {

namespace detail {
/// How to connect, and whether a thread of the runtime's own may do it. Tests construct a Runtime from one.
struct Medium {
  using Connect = std::function<std::unique_ptr<Transport>(const TransportLimits&)>;
  Connect connect;  // called by the thread that will own the transport
  bool own_thread = true;
};
}  // namespace detail
using detail::Medium;

/// MPI, or UCX beside it, under a launcher or where the program has initialised MPI, else one PE over
/// loopback. Error{kConfiguration} if an earlier Runtime has used up MPI, or this process is one of many that
/// a launcher has started and the medium has but one PE.
Medium choose_medium(const Config& config);

/// MPI over the program's communicator, which is given by the bytes of its MPI_Comm. Error{kConfiguration}:
/// the program has not initialised MPI, or the communicator or the settings allow no Runtime.
Medium over_communicator(const std::vector<std::byte>& mpi_comm, const Config& config);

}  // namespace esker
