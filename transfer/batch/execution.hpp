// One batch, run by its schedule on devices. For BatchQueue.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include <esker/transfer/batch/batch.hpp>

namespace esker::transfer {

/// Streams, and host memory for staged copies, that batches use one after the other.
class BatchExecution {
 public:
  BatchExecution(const std::vector<Device>& devices, std::size_t piece_bytes)
      : devices_{devices}, piece_bytes_{piece_bytes} {}

  /// Starts each sequence when the schedule says, and waits for all. Measured times go to the report.
  /// Returns when its clock began: what it needs is there, nothing has been started.
  std::chrono::steady_clock::time_point run(const Batch& batch, const Timeline& schedule,
                                            BatchReport* report);

 private:
  /// What a stream carries. One direction only: after a change of direction the driver runs the first copies
  /// of a batch that goes both ways one after the other.
  enum Use : std::size_t {
    kIn,    // copies to the device, and kernels behind them
    kOut,   // copies from it
    kOther  // + a sequence: its other kernels
  };
  const Stream& stream_of(std::size_t use, std::size_t device);

  const std::vector<Device>& devices_;
  const std::size_t piece_bytes_;
  std::map<std::pair<std::size_t, std::size_t>, Stream> streams_;  // by use and device
  PinnedArray<std::byte> stage_;
};

}  // namespace esker::transfer
