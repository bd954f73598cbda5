// The host's cores as a Device. A stream's work is done when the call returns.
#include <esker/device/cpu/cores.hpp>
#include <esker/device/cpu/thread_team.hpp>
#include <esker/device/device_backend.hpp>
#include <esker/device/error.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

namespace esker::detail {
namespace {

using Clock = std::chrono::steady_clock;

thread_local bool runs_lanes = false;

class CpuBackend final : public DeviceBackend {
 public:
  CpuBackend() {
    properties_.description = "cpu";
    properties_.processors = usable_cores();
    properties_.memory_bytes = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                               static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  }

  const DeviceProperties& properties() const override { return properties_; }
  gpu::Occupancy* occupancy() override { return nullptr; }

  void* allocate(MemoryKind, std::size_t bytes, bool zeroed, const std::string& what) override {
    if (bytes == 0) return nullptr;
    void* const at = bytes > properties_.memory_bytes
                         ? nullptr
                         : ::operator new (bytes, std::align_val_t{kLineBytes}, std::nothrow);
    if (at == nullptr) {
      throw Error(Error::Kind::kOutOfMemory, "cpu: " + what + " of " + std::to_string(bytes) +
                                                 " bytes: the host has " +
                                                 std::to_string(properties_.memory_bytes) + " bytes");
    }
    if (zeroed) std::memset(at, 0, bytes);
    return at;
  }
  void release(MemoryKind, void* at) noexcept override {
    ::operator delete (at, std::align_val_t{kLineBytes});
  }

  void* make_stream(StreamPriority) override { return nullptr; }
  void destroy_stream(void*) noexcept override {}
  void* own_stream() override { return nullptr; }
  void synchronize(void*) override {}
  bool is_idle(void*) override { return true; }
  void wait_for(void*, void*) override {}

  void* make_event() override { return new Clock::time_point{}; }
  void destroy_event(void* event) noexcept override { delete static_cast<Clock::time_point*>(event); }
  void record(void* event, void*) override { *static_cast<Clock::time_point*>(event) = Clock::now(); }
  bool is_done(void*) override { return true; }
  void synchronize_event(void*) override {}
  std::chrono::nanoseconds between(void* first, void* second) override {
    return *static_cast<Clock::time_point*>(second) - *static_cast<Clock::time_point*>(first);
  }

  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void copy_async(void* to, const void* from, std::size_t bytes, void*) override { copy(to, from, bytes); }
  void copy_all_async(void* const* to, const void* const* from, const std::size_t* bytes, std::size_t n,
                      void*) override {
    for (std::size_t i = 0; i < n; ++i) copy(to[i], from[i], bytes[i]);
  }
  bool reach(std::uint32_t) override { return true; }
  MemoryRange range_of(const void*) override { return {MemoryPlace::kPinned}; }
  void fill_async(void* at, std::uint8_t value, std::size_t bytes, void*) override {
    if (bytes > 0) std::memset(at, value, bytes);
  }

  void call(void*, std::function<void()> function) override { function(); }
  void* capture(void*, const std::function<void()>&) override { return nullptr; }
  void launch_graph(void*, void*) override {}
  void destroy_graph(void*) noexcept override {}

  void run_groups(const LaunchShape& shape, const GroupFunction& function) override {
    if (shape.lanes == 0) return;
    if (shape.group_lanes == 0 || shape.wave_lanes == 0)
      throw Error(Error::Kind::kDevice, "launch on cpu: a group and a wave have at least one lane");
    if (runs_lanes) return function(0, shape.groups());  // a kernel that launches: its own thread
    const std::lock_guard lock(mutex_);
    if (team_ == nullptr) {
      team_ = std::make_unique<cpu::ThreadTeam>(properties_.processors,
                                                [who = who_am_i()](std::uint32_t) { set_thread_name(who); });
    }
    const cpu::ThreadTeam::Work work = [&](std::uint32_t, cpu::ThreadTeam::Chunks& chunks) {
      runs_lanes = true;
      chunks.run(function);
      runs_lanes = false;
    };
    team_->run(shape.groups(), work, [] { return false; });
  }
  void as_current(const std::function<void()>& function) override { function(); }
  void start(const std::function<std::string()>&) override {}

 private:
  DeviceProperties properties_;
  std::mutex mutex_;                       // one launch at a time
  std::unique_ptr<cpu::ThreadTeam> team_;  // guarded by mutex_; from the first launch on
};

}  // namespace

std::shared_ptr<DeviceBackend> open_cpu() { return std::make_shared<CpuBackend>(); }

}  // namespace esker::detail
