// Frames over MPI. This header includes no MPI header, so that callers need none.
#pragma once

#include <memory>

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

/// Collective over the job. Initialises MPI with MPI_THREAD_SERIALIZED unless it is, and then finalises it
/// in close(). Uses a duplicate of MPI_COMM_WORLD.
std::unique_ptr<Transport> connect(TransportLimits limits);

}  // namespace esker::mpi
