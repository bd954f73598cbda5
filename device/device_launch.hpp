// How Device::launch() starts a kernel, as the source's compiler pass has it. Private to Device, whose header
// includes it.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include <esker/device/cpu/launch.hpp>
#include <esker/device/device.hpp>
#include <esker/device/launch.hpp>

namespace esker::detail {

/// Of a source that cannot run a kernel on this device.
[[noreturn]] ESKER_API void refuse_launch(const DeviceProperties& device, const char* compiled_for);

/// A specialisation, so that the passes of one program have each their own.
template <>
struct DeviceLaunch<Pass> {
  template <class Kernel>
  static void launch(DeviceBackend& device, const LaunchShape& shape, const Kernel& kernel,
                     [[maybe_unused]] void* stream, [[maybe_unused]] std::uint32_t scratch_bytes = 0) {
    if (device.properties().backend != Backend::kCpu) {
#if defined(ESKER_DEVICE_COMPILER)
      device.start([&] { return gpu::launch_on_device(shape, stream, kernel, scratch_bytes); });
#else
      refuse_launch(device.properties(), "the host");
#endif
    } else {
#if defined(ESKER_ON_CPU)
      static_assert(
          std::is_invocable_v<const Kernel&, Lane> || std::is_invocable_v<const Kernel&, GroupLane&>,
          "a kernel takes a Lane or a GroupLane&");
      device.run_groups(shape, [&](std::uint64_t first, std::uint64_t last) {
        cpu::run_groups(shape, first, last, GroupExecution::kFibers, kernel);
      });
#else
      refuse_launch(device.properties(), "a GPU");
#endif
    }
  }

  template <class Kernel>
  static std::uint64_t resident_groups(DeviceBackend& device, [[maybe_unused]] const Kernel& kernel,
                                       [[maybe_unused]] std::uint32_t group_lanes,
                                       [[maybe_unused]] std::uint32_t scratch_bytes) {
    std::uint64_t groups = device.properties().processors;
    if (device.properties().backend == Backend::kCpu) return groups;
#if defined(ESKER_DEVICE_COMPILER)
    device.start([&] {
      const gpu::CompiledKernel compiled = gpu::compiled<Kernel>();
      const bool allowed = compiled.allow_scratch(scratch_bytes);
      groups *= allowed ? compiled.groups_a_processor(group_lanes, scratch_bytes) : 0;
      return groups != 0 ? std::string()
                         : "a processor holds no group of " + std::to_string(group_lanes) + " lanes with " +
                               std::to_string(scratch_bytes) + " bytes of scratchpad";
    });
    return groups;
#else
    refuse_launch(device.properties(), "the host");
#endif
  }
};

}  // namespace esker::detail
