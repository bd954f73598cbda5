// Frames over MPI. This header includes no MPI header, so that callers need none.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>

#include <esker/net/transport.hpp>

namespace esker::mpi {

/// Who may call MPI once the transport is open.
enum class Ownership {
  kOwnThread,  // the thread that called connect(): MPI was not initialised before, or allows any thread
  kCaller,     // the user's thread: it initialised MPI, and for that thread alone
};

/// Local. Error{kNetwork} if MPI has been finalised.
Ownership find_ownership();

/// Local. Whether the program has initialised MPI.
bool is_initialised();

/// Local. Whether the environment says that a launcher started this process as part of a job.
bool started_by_launcher();

/// Local. The bytes of an MPI_Comm of the program's. Error{kConfiguration}: it is none that PEs can be the
/// ranks of. Requires that MPI is initialised.
void check_communicator(std::span<const std::byte> communicator);

/// Collective over the communicator, whose bytes these are; none: MPI_COMM_WORLD. Uses a duplicate of it.
/// Initialises MPI with MPI_THREAD_SERIALIZED unless it is, and then finalises it in close(). Says so, once,
/// where other ranks have not come after `patience`; 0: never.
std::unique_ptr<Transport> connect(TransportLimits limits, std::span<const std::byte> communicator = {},
                                   std::chrono::seconds patience = {});

}  // namespace esker::mpi
