// Opening a PE's GPU, and waiting for it.
#include <fmt/format.h>

#include <esker/net/gpu/engine/opened_device.hpp>
#include <thread>

namespace esker::gpu {

OpenedDevice::OpenedDevice(std::uint32_t rank_on_host)
    : device_{Device::open(fmt::format("{}:{}", kBackend, rank_on_host % device_count()))},
      user_stream_{device_.stream()},
      copy_stream_{device_.stream()},
      block_stream_{device_.stream()},
      progress_stream_{device_.stream(StreamPriority::kHigh)} {
  use();
}

void OpenedDevice::use() const {
  require(ESKER_GPU(SetDevice)(number()), fmt::format("using GPU {}", number()));
}

void OpenedDevice::copy(void* to, const void* from, std::size_t bytes, Stream stream,
                        const char* what) const {
  require(ESKER_GPU(MemcpyAsync)(to, from, bytes, ESKER_GPU(MemcpyDefault), stream), what);
}

void OpenedDevice::wait_for(Stream stream, const char* what) const {
  const ApiError error = ESKER_GPU(StreamSynchronize)(stream);
  if (error == ESKER_GPU(Success)) return;
  throw Error(Error::Kind::kDevice,
              fmt::format("{}: kernel '{}' failed on {}: {}", what, kernel_name(), name(), text_of(error)));
}

bool OpenedDevice::was_running() const {
  use();
  const ApiError error = ESKER_GPU(StreamQuery)(user_stream());
  if (error == ESKER_GPU(Success)) return false;
  if (error == ESKER_GPU(ErrorNotReady)) {
    (void)ESKER_GPU(GetLastError)();
    return true;
  }
  throw Error(Error::Kind::kDevice,
              fmt::format("kernel '{}' failed on {}: {}", kernel_name(), name(), text_of(error)));
}

void OpenedDevice::check_progress_stream() const {
  use();
  const ApiError error = ESKER_GPU(StreamQuery)(progress_stream());
  if (error == ESKER_GPU(Success) || error == ESKER_GPU(ErrorNotReady)) return;
  throw Error(Error::Kind::kDevice, fmt::format("kernel '{}' or a progress kernel failed on {}: {}",
                                                kernel_name(), name(), text_of(error)));
}

bool OpenedDevice::try_wait_for_all(std::chrono::seconds patience) const {
  (void)ESKER_GPU(SetDevice)(number());
  const auto until = std::chrono::steady_clock::now() + patience;
  for (const Stream stream : {user_stream(), copy_stream(), block_stream(), progress_stream()}) {
    while (ESKER_GPU(StreamQuery)(stream) == ESKER_GPU(ErrorNotReady)) {
      if (patience.count() > 0 && std::chrono::steady_clock::now() >= until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }
  (void)ESKER_GPU(GetLastError)();
  return true;
}

void OpenedDevice::finish() const {
  (void)ESKER_GPU(SetDevice)(number());
  (void)ESKER_GPU(DeviceSynchronize)();
}

std::string OpenedDevice::kernel_name() const {
  const char* const name = kernel_.load(std::memory_order_relaxed);
  return name == nullptr ? "none of Esker's" : name;
}

}  // namespace esker::gpu
