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
                     [[maybe_unused]] void* stream) {
    if (device.properties().backend != Backend::kCpu) {
#if defined(ESKER_DEVICE_COMPILER)
      device.start([&] { return gpu::launch_on_device(shape, stream, kernel); });
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
};

}  // namespace esker::detail
