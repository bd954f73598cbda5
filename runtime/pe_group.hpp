// What a Communicator stands for.
#pragma once

#include <esker/config.hpp>
#include <esker/runtime/medium.hpp>

namespace esker::detail {

/// PEs that Runtimes can be made of.
class PeGroup {
 public:
  virtual ~PeGroup() = default;
  /// Local; the thread that constructs the Runtime. Error{kConfiguration}: not with these settings, or not
  /// with this MPI.
  virtual Medium medium(const Config& config) const = 0;
};

}  // namespace esker::detail
