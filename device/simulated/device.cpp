// A GPU of threads: its devices, which of them reach each other, and what kernels fit.
#include <esker/device/error.hpp>
#include <esker/device/simulated/api.hpp>
#include <esker/device/simulated/lanes.hpp>
#include <esker/device/simulated/parts.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace esker::simulated {
namespace {

constexpr int kProcessorScratch = 228 << 10, kGroupScratch = 227 << 10;  // as an H100 has
constexpr int kDeclaredScratch = 32 << 10;                               // what a kernel is taken to declare
constexpr int kLanesHeld = 2048;                                         // of a processor

thread_local int current = 0;

}  // namespace

int current_device() { return current; }

bool has_access(int from, int to) {
  const char* const pairs = std::getenv("SIMULATED_NO_ACCESS");
  return pairs == nullptr ||
         fmt::format(",{},", pairs).find(fmt::format(",{}-{},", from, to)) == std::string::npos;
}

const char* GetErrorName(ApiError error) {
  switch (error) {
    case Success:
      return "Success";
    case ErrorInvalidValue:
      return "ErrorInvalidValue";
    case ErrorMemoryAllocation:
      return "ErrorMemoryAllocation";
    case ErrorNotReady:
      return "ErrorNotReady";
    case ErrorPeerAccessAlreadyEnabled:
      return "ErrorPeerAccessAlreadyEnabled";
    case ErrorPeerAccessUnsupported:
      return "ErrorPeerAccessUnsupported";
  }
  return "unknown";
}
const char* GetErrorString(ApiError error) { return GetErrorName(error); }
ApiError GetLastError() { return Success; }

ApiError GetDeviceCount(int* count) {
  static const int devices = [] {
    const char* const text = std::getenv("SIMULATED_DEVICES");
    if (text == nullptr) return kDevices;
    const int given = std::atoi(text);
    if (given < 1 || given > kDevices)
      misuse(fmt::format("SIMULATED_DEVICES is '{}': it is 1 to {}", text, kDevices));
    return given;
  }();
  *count = devices;
  return Success;
}
ApiError GetDevice(int* device) {
  *device = current;
  return Success;
}
ApiError SetDevice(int device) {
  current = device;
  return Success;
}
ApiError GetDeviceProperties(Properties* properties, int) {
  *properties = {"threads of the host", kProcessors, kWaveLanes};
  return Success;
}
ApiError DeviceGetAttribute(int* value, Attribute which, int) {
  *value = which == Attribute::kProcessors         ? kProcessors
           : which == Attribute::kProcessorScratch ? kProcessorScratch
                                                   : kGroupScratch;
  return Success;
}
ApiError DeviceEnablePeerAccess(int device, unsigned) {
  return has_access(current, device) ? Success : ErrorPeerAccessUnsupported;
}
ApiError DeviceGetPCIBusId(char* address, int bytes, int device) {
  std::snprintf(address, static_cast<std::size_t>(bytes), "%d", device);
  return Success;
}
ApiError DeviceGetByPCIBusId(int* device, const char* address) {
  *device = std::atoi(address);
  return Success;
}
ApiError DeviceGetP2PAttribute(int* value, PeerAttribute, int, int) {
  *value = 1;
  return Success;
}

ApiError FuncGetAttributes(FunctionAttributes* attributes, const void*) {
  attributes->sharedSizeBytes = kDeclaredScratch;
  return Success;
}
ApiError FuncSetAttribute(const void*, int, int bytes) {
  return bytes <= kGroupScratch - kDeclaredScratch ? Success : ErrorInvalidValue;
}
ApiError occupancy(int* groups, int lanes, std::size_t scratch_bytes) {
  const auto by_scratch =
      static_cast<std::size_t>(kProcessorScratch) / (kDeclaredScratch + 1024 + scratch_bytes);
  *groups = std::max(1, std::min(kLanesHeld / lanes, static_cast<int>(by_scratch)));
  return Success;
}
}  // namespace esker::simulated
