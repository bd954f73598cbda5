// What is an MPI communicator, for headers that do not include MPI's.
#pragma once

namespace esker::detail {

class PeGroup;

/// <esker/mpi.hpp> says it of MPI_Comm, which MPIs define each in another way.
template <class>
inline constexpr bool kIsMpiCommunicator = false;
template <class T>
concept MpiCommunicator = kIsMpiCommunicator<T>;

}  // namespace esker::detail
