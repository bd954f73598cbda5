// Starting progress kernels on the GPU, in the space that the kernels beside them leave.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include <esker/net/gpu/engine/handler_registry.hpp>
#include <esker/net/gpu/engine/opened_device.hpp>
#include <esker/net/gpu/engine/progress_starter.hpp>
#include <esker/net/gpu/pe_state.hpp>

namespace esker::gpu {

/// The reserved occupancy is what a launch leaves to a group of a progress kernel: the least of all launches.
///
/// Contract. reserve() by the user's thread, before the launch that leaves less; the rest by the starter.
class Launcher final : public ProgressLauncher {
 public:
  /// `is_shared`: other PEs' kernels run on this GPU, and leave only what every kernel does.
  Launcher(const OpenedDevice& device, const HandlerRegistry& handlers, const PeState* pe_state,
           bool is_shared);

  /// Kernels from now on leave a group of a progress kernel so many bytes of scratchpad; 0: kPoolBytes for
  /// its pool, as every kernel does.
  void reserve(std::uint32_t scratch_bytes);

  void start(const ProgressRequest& request) override;
  bool is_kernel_running() override { return device_.was_running(); }
  void check_progress_kernel() override { device_.check_progress_stream(); }

 private:
  static constexpr std::uint32_t kNoLaunch = ~0u;

  const OpenedDevice& device_;
  const HandlerRegistry& handlers_;
  const PeState* const pe_state_;
  std::mutex mutex_;
  std::atomic<std::uint32_t> reserved_bytes_;  // changes under mutex_
};

}  // namespace esker::gpu
