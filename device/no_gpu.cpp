// A build without a GPU's back end.
#include <esker/device/device_backend.hpp>

namespace esker::detail {

std::uint32_t count_gpus() { return 0; }
const char* gpu_backend() noexcept { return nullptr; }
std::shared_ptr<DeviceBackend> open_gpu(std::uint32_t) { return nullptr; }

}  // namespace esker::detail
