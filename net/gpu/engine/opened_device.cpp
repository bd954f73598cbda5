// Opening a PE's GPU, and waiting for it.
#include <fmt/format.h>

#include <esker/net/gpu/engine/opened_device.hpp>
#include <thread>

namespace esker::gpu {

OpenedDevice::OpenedDevice(std::uint32_t rank_on_host)
    : devices_{device_count()},
      number_{static_cast<int>(rank_on_host % devices_)},
      occupancy_{limits_of(number_)} {
  use();
  Properties properties{};
  require(ESKER_GPU(GetDeviceProperties)(&properties, number_), "reading the device's properties");
  name_ = fmt::format("{}: {}, GPU {} of {}", kBackend, properties.name, number_, devices_);
  int least = 0;
  int greatest = 0;
  require(ESKER_GPU(DeviceGetStreamPriorityRange)(&least, &greatest), "reading stream priorities");
  for (Stream* stream : {&user_stream_, &copy_stream_, &progress_stream_}) {
    const int priority = stream == &progress_stream_ ? greatest : least;
    require(ESKER_GPU(StreamCreateWithPriority)(stream, ESKER_GPU(StreamNonBlocking), priority),
            "making a stream");
  }
}

OpenedDevice::~OpenedDevice() {
  for (const Stream stream : {user_stream_, copy_stream_, progress_stream_})
    (void)ESKER_GPU(StreamDestroy)(stream);
}

void OpenedDevice::use() const {
  require(ESKER_GPU(SetDevice)(number_), fmt::format("using GPU {}", number_));
}

void OpenedDevice::copy(void* to, const void* from, std::size_t bytes, Stream stream,
                        const char* what) const {
  require(ESKER_GPU(MemcpyAsync)(to, from, bytes, ESKER_GPU(MemcpyDefault), stream), what);
}

void OpenedDevice::wait_for(Stream stream, const char* what) const {
  const ApiError error = ESKER_GPU(StreamSynchronize)(stream);
  if (error == ESKER_GPU(Success)) return;
  throw Error(Error::Kind::kDevice,
              fmt::format("{}: kernel '{}' failed on {}: {}", what, kernel_name(), name_, text_of(error)));
}

bool OpenedDevice::was_running() const {
  use();
  const ApiError error = ESKER_GPU(StreamQuery)(user_stream_);
  if (error == ESKER_GPU(Success)) return false;
  if (error == ESKER_GPU(ErrorNotReady)) {
    (void)ESKER_GPU(GetLastError)();
    return true;
  }
  throw Error(Error::Kind::kDevice,
              fmt::format("kernel '{}' failed on {}: {}", kernel_name(), name_, text_of(error)));
}

void OpenedDevice::check_progress_stream() const {
  use();
  const ApiError error = ESKER_GPU(StreamQuery)(progress_stream_);
  if (error == ESKER_GPU(Success) || error == ESKER_GPU(ErrorNotReady)) return;
  throw Error(Error::Kind::kDevice, fmt::format("kernel '{}' or a progress kernel failed on {}: {}",
                                                kernel_name(), name_, text_of(error)));
}

bool OpenedDevice::try_wait_for_all(std::chrono::seconds patience) const {
  (void)ESKER_GPU(SetDevice)(number_);
  const auto until = std::chrono::steady_clock::now() + patience;
  for (const Stream stream : {user_stream_, copy_stream_, progress_stream_}) {
    while (ESKER_GPU(StreamQuery)(stream) == ESKER_GPU(ErrorNotReady)) {
      if (patience.count() > 0 && std::chrono::steady_clock::now() >= until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }
  (void)ESKER_GPU(GetLastError)();
  return true;
}

void OpenedDevice::finish() const {
  (void)ESKER_GPU(SetDevice)(number_);
  (void)ESKER_GPU(DeviceSynchronize)();
}

std::string OpenedDevice::kernel_name() const {
  const char* const name = kernel_.load(std::memory_order_relaxed);
  return name == nullptr ? "none of Esker's" : name;
}

}  // namespace esker::gpu
