// A GPU as a Device, over the runtime of whichever back end was built.
#include <esker/device/device_backend.hpp>
#include <esker/device/gpu/api.hpp>

#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace esker::detail {
namespace {

/// Makes a device the thread's current one, and gives it back the one that it had.
class Current {
 public:
  explicit Current(int device) : device_{device} {
    (void)ESKER_GPU(GetDevice)(&before_);
    if (before_ != device_) gpu::require(ESKER_GPU(SetDevice)(device_), fmt::format("using GPU {}", device_));
  }
  ~Current() {
    if (before_ != device_) (void)ESKER_GPU(SetDevice)(before_);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  int device_;
  int before_ = 0;
};

constexpr Backend kBackend = std::string_view(gpu::kBackend) == "cuda"  ? Backend::kCuda
                             : std::string_view(gpu::kBackend) == "hip" ? Backend::kHip
                                                                        : Backend::kSimulated;

gpu::Stream stream_of(void* handle) { return static_cast<gpu::Stream>(handle); }
gpu::Event event_of(void* handle) { return static_cast<gpu::Event>(handle); }

using Call = std::unique_ptr<std::function<void()>>;

/// A graph and the functions that it calls.
struct Captured {
  gpu::LaunchableGraph graph{};
  std::vector<Call> calls;
};
/// Of the capture that this thread is in.
thread_local std::vector<Call>* captured_calls = nullptr;

// The driver calls these, through which nothing may be thrown.
void call_once(void* function) noexcept { (*Call(static_cast<std::function<void()>*>(function)))(); }
void call_again(void* function) noexcept { (*static_cast<std::function<void()>*>(function))(); }

class GpuBackend final : public DeviceBackend {
 public:
  explicit GpuBackend(std::uint32_t index)
      : device_{static_cast<int>(index)},
        properties_{read_properties(index)},
        occupancy_{gpu::limits_of(device_)},
        copies_{make_stream(StreamPriority::kNormal)} {}
  ~GpuBackend() override {
    if (own_ != nullptr) destroy_stream(own_);
    destroy_stream(copies_);
  }
  GpuBackend(const GpuBackend&) = delete;
  GpuBackend& operator=(const GpuBackend&) = delete;

  const DeviceProperties& properties() const override { return properties_; }
  gpu::Occupancy* occupancy() override { return &occupancy_; }

  bool reach(std::uint32_t device) override {
    if (static_cast<int>(device) == device_) return true;
    const Current current(device_);
    const gpu::ApiError error = ESKER_GPU(DeviceEnablePeerAccess)(static_cast<int>(device), 0);
    if (error == ESKER_GPU(Success)) return true;
    (void)ESKER_GPU(GetLastError)();  // or a launch that follows would report it
    return error == ESKER_GPU(ErrorPeerAccessAlreadyEnabled);
  }

  void* allocate(MemoryKind kind, std::size_t bytes, bool zeroed, const std::string& what) override {
    if (bytes == 0) return nullptr;
    const Current current(device_);
    void* at = nullptr;
    gpu::ApiError error{};
    const char* where = "";
    switch (kind) {
      case MemoryKind::kDevice:
        error = ESKER_GPU(Malloc)(&at, bytes);
        where = "device";
        break;
      case MemoryKind::kPinned:
        error = gpu::allocate_pinned(&at, bytes);
        where = "pinned";
        break;
      case MemoryKind::kManaged:
        error = ESKER_GPU(MallocManaged)(&at, bytes);
        where = "managed";
        break;
    }
    if (error != ESKER_GPU(Success)) {
      std::size_t free = 0, total = 0;
      (void)ESKER_GPU(MemGetInfo)(&free, &total);
      require(error, "{} of {} bytes of {} memory; {} of {} MiB are free on the device", what, bytes, where,
              free >> 20, total >> 20);
    }
    if (!zeroed) return at;
    try {
      if (kind == MemoryKind::kPinned) {
        std::memset(at, 0, bytes);
      } else {
        fill_async(at, 0, bytes, copies_);
        synchronize(copies_);
      }
    } catch (...) {
      release(kind, at);
      throw;
    }
    return at;
  }
  void release(MemoryKind kind, void* at) noexcept override {
    (void)(kind == MemoryKind::kPinned ? gpu::free_pinned(at) : ESKER_GPU(Free)(at));
  }

  void* make_stream(StreamPriority priority) override {
    const Current current(device_);
    int least = 0;
    int greatest = 0;
    gpu::require(ESKER_GPU(DeviceGetStreamPriorityRange)(&least, &greatest), "reading stream priorities");
    gpu::Stream stream{};
    require(ESKER_GPU(StreamCreateWithPriority)(&stream, ESKER_GPU(StreamNonBlocking),
                                                priority == StreamPriority::kHigh ? greatest : least),
            "making a stream");
    return stream;
  }
  void destroy_stream(void* stream) noexcept override { (void)ESKER_GPU(StreamDestroy)(stream_of(stream)); }
  void* own_stream() override {
    std::call_once(own_made_, [this] { own_ = make_stream(StreamPriority::kNormal); });
    return own_;
  }
  void synchronize(void* stream) override {
    require(ESKER_GPU(StreamSynchronize)(stream_of(stream)), "waiting for a stream");
  }
  bool is_idle(void* stream) override {
    return is_ready(ESKER_GPU(StreamQuery)(stream_of(stream)), "asking for the state of a stream");
  }
  void wait_for(void* stream, void* event) override {
    require(ESKER_GPU(StreamWaitEvent)(stream_of(stream), event_of(event), 0), "a stream waits for an event");
  }

  void* make_event() override {
    const Current current(device_);
    gpu::Event event{};
    require(ESKER_GPU(EventCreate)(&event), "making an event");
    return event;
  }
  void destroy_event(void* event) noexcept override { (void)ESKER_GPU(EventDestroy)(event_of(event)); }
  void record(void* event, void* stream) override {
    require(ESKER_GPU(EventRecord)(event_of(event), stream_of(stream)), "recording an event");
  }
  bool is_done(void* event) override {
    return is_ready(ESKER_GPU(EventQuery)(event_of(event)), "asking for the state of an event");
  }
  void synchronize_event(void* event) override {
    require(ESKER_GPU(EventSynchronize)(event_of(event)), "waiting for an event");
  }
  std::chrono::nanoseconds between(void* first, void* second) override {
    float milliseconds = 0;
    require(ESKER_GPU(EventElapsedTime)(&milliseconds, event_of(first), event_of(second)),
            "the time between two events");
    return std::chrono::nanoseconds{static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6)};
  }

  void copy(void* to, const void* from, std::size_t bytes) override {
    copy_async(to, from, bytes, copies_);
    synchronize(copies_);
  }
  void copy_async(void* to, const void* from, std::size_t bytes, void* stream) override {
    if (bytes == 0) return;
    require(ESKER_GPU(MemcpyAsync)(to, from, bytes, ESKER_GPU(MemcpyDefault), stream_of(stream)),
            "copying {} bytes", bytes);
  }
  void copy_all_async(void* const* to, const void* const* from, const std::size_t* bytes, std::size_t n,
                      void* stream) override {
    if (n == 0) return;
    if (const auto error = gpu::copy_together(to, from, bytes, n, device_, stream_of(stream))) {
      require(*error, "{} copies in one call", n);
    } else {
      for (std::size_t i = 0; i < n; ++i) copy_async(to[i], from[i], bytes[i], stream);
    }
  }
  MemoryRange range_of(const void* at) override { return gpu::range_of(at); }
  void fill_async(void* at, std::uint8_t value, std::size_t bytes, void* stream) override {
    if (bytes == 0) return;
    require(ESKER_GPU(MemsetAsync)(at, value, bytes, stream_of(stream)), "filling {} bytes", bytes);
  }

  void call(void* stream, std::function<void()> function) override {
    auto owned = std::make_unique<std::function<void()>>(std::move(function));
    auto state = ESKER_GPU(StreamCaptureStatusNone);
    require(ESKER_GPU(StreamIsCapturing)(stream_of(stream), &state), "asking whether a stream is captured");
    const bool is_captured = state != ESKER_GPU(StreamCaptureStatusNone);
    if (is_captured && captured_calls == nullptr) {
      throw Error(
          Error::Kind::kDevice,
          fmt::format("{}: a call on a stream that something else than Device::graph() captures: nothing "
                      "would keep its function",
                      name()));
    }
    require(gpu::launch_host_function(stream_of(stream), is_captured ? call_again : call_once, owned.get()),
            "a call in a stream");
    if (is_captured) {
      captured_calls->push_back(std::move(owned));
    } else {
      (void)owned.release();
    }
  }
  void* capture(void* stream, const std::function<void()>& put) override {
    if (!gpu::kGraphsTakeFunctions) return nullptr;
    const Current current(device_);
    auto captured = std::make_unique<Captured>();
    require(ESKER_GPU(StreamBeginCapture)(stream_of(stream), ESKER_GPU(StreamCaptureModeThreadLocal)),
            "beginning to capture a stream");
    gpu::CapturedGraph graph{};
    std::exception_ptr thrown;
    auto* const outer = std::exchange(captured_calls, &captured->calls);
    try {
      put();
    } catch (...) {
      thrown = std::current_exception();
    }
    captured_calls = outer;
    const gpu::ApiError ended = ESKER_GPU(StreamEndCapture)(stream_of(stream), &graph);
    gpu::ApiError made = ended;
    if (ended == ESKER_GPU(Success)) {
      if (thrown == nullptr) made = ESKER_GPU(GraphInstantiateWithFlags)(&captured->graph, graph, 0);
      (void)ESKER_GPU(GraphDestroy)(graph);
    }
    if (thrown != nullptr) {
      (void)ESKER_GPU(GetLastError)();
      std::rethrow_exception(thrown);
    }
    require(made, "capturing a stream");
    return captured.release();
  }
  void launch_graph(void* graph, void* stream) override {
    require(ESKER_GPU(GraphLaunch)(static_cast<Captured*>(graph)->graph, stream_of(stream)),
            "launching a graph");
  }
  void destroy_graph(void* graph) noexcept override {
    const std::unique_ptr<Captured> captured(static_cast<Captured*>(graph));
    (void)ESKER_GPU(GraphExecDestroy)(captured->graph);
  }

  void run_groups(const LaunchShape&, const GroupFunction&) override {}
  void as_current(const std::function<void()>& function) override {
    const Current current(device_);
    function();
  }
  void start(const std::function<std::string()>& start) override {
    const Current current(device_);
    const std::string error = start();
    if (!error.empty()) throw Error(Error::Kind::kDevice, fmt::format("{}: {}", name(), error));
  }

 private:
  const std::string& name() const { return properties_.description; }
  /// gpu::require() by the device's name; a call that has succeeded costs no text.
  template <class... Values>
  void require(gpu::ApiError error, fmt::format_string<Values...> what, Values&&... values) const {
    if (error == ESKER_GPU(Success)) return;
    gpu::require(error, name() + ": " + fmt::format(what, std::forward<Values>(values)...));
  }
  bool is_ready(gpu::ApiError error, const char* what) const {
    if (error == ESKER_GPU(ErrorNotReady)) {
      (void)ESKER_GPU(GetLastError)();
      return false;
    }
    require(error, "{}", what);
    return true;
  }
  static DeviceProperties read_properties(std::uint32_t index) {
    const Current current(static_cast<int>(index));
    gpu::Properties read{};
    gpu::require(ESKER_GPU(GetDeviceProperties)(&read, static_cast<int>(index)),
                 fmt::format("reading the properties of GPU {}", index));
    std::size_t free = 0;
    std::size_t total = 0;
    gpu::require(ESKER_GPU(MemGetInfo)(&free, &total), "asking for the device's memory");
    const gpu::Occupancy::Limits limits = gpu::limits_of(static_cast<int>(index));
    DeviceProperties properties;
    properties.backend = kBackend;
    properties.index = index;
    properties.devices = gpu::device_count();
    properties.model = read.name;
    properties.description =
        fmt::format("{}: {}, GPU {} of {}", gpu::kBackend, properties.model, index, properties.devices);
    properties.processors = limits.processors;
    properties.wave_lanes = static_cast<std::uint32_t>(read.warpSize);
    properties.processor_scratch_bytes = limits.processor_scratch;
    properties.group_scratch_bytes = limits.group_scratch;
    properties.memory_bytes = total;
    char address[32] = "";
    gpu::require(ESKER_GPU(DeviceGetPCIBusId)(address, sizeof address, static_cast<int>(index)),
                 fmt::format("asking for the address of GPU {}", index));
    properties.bus_address = address;
    return properties;
  }

  const int device_;
  const DeviceProperties properties_;
  gpu::Occupancy occupancy_;
  void* const copies_;  // for calls that wait
  std::once_flag own_made_;
  void* own_ = nullptr;
};

}  // namespace

std::uint32_t count_gpus() { return gpu::device_count(); }
const char* gpu_backend() noexcept { return gpu::kBackend; }
std::shared_ptr<DeviceBackend> open_gpu(std::uint32_t index) { return std::make_shared<GpuBackend>(index); }

}  // namespace esker::detail
