// Starting progress kernels on the GPU, in the space that the kernels beside them leave.
#pragma once

#include <cstdint>

#include <esker/net/gpu/engine/handler_registry.hpp>
#include <esker/net/gpu/engine/opened_device.hpp>
#include <esker/net/gpu/engine/progress_starter.hpp>
#include <esker/net/gpu/pe_state.hpp>

namespace esker::gpu {

/// Contract. The starter's thread calls. Progress kernels are guests of the device's broker.
class Launcher final : public ProgressLauncher {
 public:
  /// `is_shared`: other PEs' kernels run on this GPU, and leave only what every kernel does.
  Launcher(OpenedDevice& device, const HandlerRegistry& handlers, const PeState* pe_state, bool is_shared);

  void start(const ProgressRequest& request) override;
  bool is_kernel_running() override { return device_.was_running(); }
  void check_progress_kernel() override { device_.check_progress_stream(); }

 private:
  OpenedDevice& device_;
  const HandlerRegistry& handlers_;
  const PeState* const pe_state_;
  std::uint32_t plain_scratch_bytes_ = 0;  // of a group of the progress kernel without handlers
  Occupancy::GuestId guest_ = 0;
};

}  // namespace esker::gpu
