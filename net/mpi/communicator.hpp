// What the transport asks MPI of communicators.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace esker::mpi {

/// Error{kNetwork}: the call, and what MPI says.
void check(int code, const char* call);

/// Those bytes as an MPI_Comm; none: MPI_COMM_WORLD. Error{kConfiguration}: of another MPI.
MPI_Comm communicator_of(std::span<const std::byte> bytes);

/// Collective. Where other ranks have not come after `patience` it says so, once; 0: never.
MPI_Comm duplicate(MPI_Comm of, std::chrono::seconds patience);

/// By rank of the communicator, the rank in MPI_COMM_WORLD; that of a process that is not in it is its own.
std::vector<std::uint32_t> world_ranks_of(MPI_Comm communicator);

}  // namespace esker::mpi
