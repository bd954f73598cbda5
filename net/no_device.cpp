// A build without a device has no engine.
#include <esker/net/device_engine.hpp>

namespace esker {

std::uint32_t count_devices() { return 0; }
std::unique_ptr<DeviceEngine> make_device_engine(const DeviceSettings&) { return nullptr; }

}  // namespace esker
