// What the coprocessor model does between kernels: every PE sends each other PE one block of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <esker/esker.hpp>

namespace styles {

/// Collective calls, from the thread that owns the Runtime; over MPI, beside the runtime's own messages.
class Exchange {
 public:
  /// Throws esker::Error{kConfiguration} with several PEs and no MPI, {kContract} without initialise_mpi().
  explicit Exchange(const esker::Runtime& rt);
  ~Exchange();
  /// Before the Runtime, on the thread that will construct it: its network thread and this one are both to
  /// call MPI, which it would not ask for. Throws esker::Error{kNetwork} if the MPI library has no such
  /// level.
  static void initialise_mpi();
  /// After the Runtime: finalises MPI if initialise_mpi() has initialised it.
  static void finalise_mpi();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Sends blocks[p] to PE p; blocks_from(s) is then what PE s sent here. True if some PE has said `more`.
  bool swap(std::span<const std::vector<std::byte>> blocks, bool more);
  std::span<const std::byte> block_from(std::uint32_t pe) const;

  /// Blocks that were not empty, and their bytes, to other PEs so far.
  std::uint64_t blocks_sent() const { return blocks_sent_; }
  std::uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  struct Communicator;

  std::uint32_t pe_;
  std::uint32_t n_pes_;
  std::unique_ptr<Communicator> communicator_;  // null: one PE
  std::vector<std::byte> sent_, received_;
  std::vector<std::size_t> first_;  // of each PE's block in received_, and the end
  std::uint64_t blocks_sent_ = 0;
  std::uint64_t bytes_sent_ = 0;
};

}  // namespace styles
