// For programs that use MPI themselves: Runtime(MPI_Comm, config). The one header that includes MPI's; its
// user links MPI, the same as Esker's.
//
//   MPI_Comm_split(MPI_COMM_WORLD, color, rank, &half);
//   esker::Runtime rt(half, config);  // PEs are the ranks of `half`
#pragma once

#include <mpi.h>

#include <esker/config.hpp>
#include <esker/runtime.hpp>

namespace esker {

template <>
inline constexpr bool detail::kIsMpiCommunicator<MPI_Comm> = true;

}  // namespace esker
