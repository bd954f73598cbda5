// Graphs of copies and launches, which builds for CUDA alone have: there ESKER_PIPE_GRAPHS is 1.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <esker/device.hpp>

namespace pipe_apps {

/// A copy to the device, a launch, and a copy back, one after the other.
struct GraphBranch {
  void* device_in;
  const void* host_in;
  std::size_t in_bytes;
  std::function<void(const esker::Stream& stream)> launch;
  void* host_out;
  const void* device_out;
  std::size_t out_bytes;  // 0: nothing is copied back
};

/// Branches that run side by side.
///
/// Contract Move-only. Of one device, which is the thread's current one. The host's memory is pinned. A
/// change
///          is for later launches, and not made while the graph is under way.
/// Errors   Error{kDevice}, which names the call.
class LaunchGraph {
 public:
  LaunchGraph(const esker::Stream& stream, const std::vector<GraphBranch>& branches);
  ~LaunchGraph();
  LaunchGraph(LaunchGraph&&) noexcept;
  LaunchGraph& operator=(LaunchGraph&&) noexcept;

  /// The branch's copies are from and to here.
  void set_host(std::size_t branch, const void* in, void* out);
  /// Once more, on this stream.
  void launch(const esker::Stream& stream) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pipe_apps
