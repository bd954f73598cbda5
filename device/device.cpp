// Which device a name means.
#include <esker/device/device.hpp>

#include <charconv>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <esker/device/error.hpp>

namespace esker {
namespace {

/// What this build and this machine have, and how to ask for it.
std::string what_there_is() {
  const char* const backend = detail::gpu_backend();
  if (backend == nullptr)
    return "this build has no GPU's back end: use cpu, or configure with -DESKER_DEVICE=CUDA or HIP";
  const std::uint32_t count = detail::count_gpus();
  if (count == 0)
    return fmt::format("this build has the back end {}, and this machine none of its GPUs: use cpu", backend);
  return fmt::format(
      "this build has the back end {}, and this machine {} of its GPU{}: use {}, auto or cpu", backend, count,
      count == 1 ? "" : "s",
      count == 1 ? fmt::format("{}:0", backend) : fmt::format("{}:0 to {}:{}", backend, backend, count - 1));
}

[[noreturn]] void refuse(const std::string& name, const char* why) {
  throw Error(Error::Kind::kDevice, fmt::format("Device::open(\"{}\"): {}{}", name, why, what_there_is()));
}

}  // namespace

const char* to_string(Backend backend) noexcept {
  switch (backend) {
    case Backend::kCpu:
      return "cpu";
    case Backend::kCuda:
      return "cuda";
    case Backend::kHip:
      return "hip";
    case Backend::kSimulated:
      return "simulated";
  }
  return "unknown";
}

Device Device::open(const std::string& name) {
  if (name == "cpu" || (name == "auto" && detail::count_gpus() == 0)) return Device(detail::open_cpu());
  if (name == "auto") return Device(detail::open_gpu(0));
  const std::size_t colon = name.find(':');
  const std::string_view backend = std::string_view(name).substr(0, colon);
  if (backend != "cuda" && backend != "hip" && backend != "simulated") {
    refuse(
        name,
        "a device is auto, cpu, cuda, hip or simulated, the last three with a number if wanted (cuda:1); ");
  }
  std::uint32_t index = 0;
  if (colon != std::string::npos) {
    const char* const end = name.data() + name.size();
    const auto [read, error] = std::from_chars(name.data() + colon + 1, end, index);
    if (error != std::errc{} || read != end) refuse(name, "after the colon comes a GPU's number; ");
  }
  const char* const built = detail::gpu_backend();
  if (built == nullptr || backend != built || index >= detail::count_gpus()) refuse(name, "");
  return Device(detail::open_gpu(index));
}

void detail::refuse_launch(const DeviceProperties& device, const char* compiled_for) {
  throw Error(
      Error::Kind::kDevice,
      fmt::format("launch on {}: this source was compiled for {} alone; {}", device.description, compiled_for,
                  device.backend == Backend::kCpu
                      ? "open a GPU, or compile it with the host's compiler"
                      : "compile it with the device's compiler, or open the device \"cpu\""));
}

}  // namespace esker
