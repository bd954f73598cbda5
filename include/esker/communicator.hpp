// Which PEs a Runtime is made of: the processes of an MPI communicator, or threads of this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <esker/device/platform.hpp>
#include <esker/runtime/communicator_handle.hpp>

namespace esker {

/// The PEs of one or several Runtimes.
///
/// Contract. `Runtime(communicator, config)` is collective over these PEs, and makes its own duplicate of the
///           communicator: what Runtimes and the program send over it never mix. Several Runtimes may be made
///           from one, one after another or at a time, in the same order on every PE; likewise from several
///           that have PEs in common. The Communicator itself may end before they do.
class ESKER_API Communicator {
 public:
  /// With <esker/mpi.hpp>: the processes of an MPI_Comm, by rank. The program has initialised MPI, and
  /// finalises it after the last Runtime. It may free the MPI_Comm once the last Runtime over it is made.
  template <detail::MpiCommunicator Comm>
  Communicator(Comm comm)  // NOLINT(google-explicit-constructor): Runtime(MPI_Comm, config)
      : Communicator(&comm, sizeof comm) {}

  /// Local. PEs that are `n` threads of this process: element i is PE i's. Each makes its Runtime on a thread
  /// of its own. For tests, and for processes that several parts of a program share.
  ///
  /// Errors. Error{kConfiguration}: n is 0, or more PEs than a message can name.
  static std::vector<Communicator> threads(std::uint32_t n);

  Communicator(const Communicator&) = default;
  Communicator& operator=(const Communicator&) = default;
  Communicator(Communicator&&) noexcept = default;
  Communicator& operator=(Communicator&&) noexcept = default;
  ~Communicator() = default;

 private:
  friend class Runtime;
  explicit Communicator(std::shared_ptr<const detail::PeGroup> group) : group_{std::move(group)} {}
  Communicator(const void* mpi_comm, std::size_t bytes);

  std::shared_ptr<const detail::PeGroup> group_;
};

}  // namespace esker
