// A build without a device has no engine.
#include <esker/net/device_engine.hpp>

namespace esker {

std::unique_ptr<DeviceEngine> make_device_engine(const DeviceSettings&) { return nullptr; }

}  // namespace esker
