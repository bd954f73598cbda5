// A GPU of threads: memory and streams.
#include <esker/device/error.hpp>
#include <esker/device/simulated/api.hpp>
#include <esker/device/simulated/lanes.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace esker::simulated {
namespace {

constexpr int kDevices = 16;
constexpr int kProcessors = 2;  // groups of a stream that run side by side
constexpr int kProcessorScratch = 228 << 10, kGroupScratch = 227 << 10;  // as an H100 has
constexpr int kDeclaredScratch = 32 << 10;                               // what a kernel is taken to declare
constexpr int kLanesHeld = 2048;                                         // of a processor
constexpr std::size_t kPage = 4096;

std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

thread_local int current_device = 0;

/// Whether kernels of device `from` reach memory of device `to`.
bool has_access(int from, int to) {
  const char* const pairs = std::getenv("SIMULATED_NO_ACCESS");
  return pairs == nullptr ||
         fmt::format(",{},", pairs).find(fmt::format(",{}-{},", from, to)) == std::string::npos;
}

/// Memory that other processes of the host can reach, by its file. Behind it stands how many have it open.
class Allocations {
 public:
  ApiError allocate(void** at, std::size_t bytes) {
    if (bytes == 0 || bytes > memory()) return ErrorMemoryAllocation;
    bytes = whole_pages(bytes);
    const int file = memfd_create("esker", MFD_CLOEXEC);
    if (file < 0) return ErrorMemoryAllocation;
    if (ftruncate(file, static_cast<off_t>(bytes + kPage)) != 0 || !map(at, file, bytes)) {
      close(file);
      return ErrorMemoryAllocation;
    }
    const std::lock_guard lock(mutex_);
    known_[*at] = {file, bytes, current_device, false};
    return Success;
  }
  ApiError release(void* at) {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(at);
    if (found == known_.end()) return ErrorInvalidValue;
    const Allocation& memory = found->second;
    const std::atomic_ref<std::uint64_t> openers = openers_of(at, memory.bytes);
    if (memory.is_opened) {
      openers.fetch_sub(1, std::memory_order_acq_rel);
    } else if (const std::uint64_t n = openers.load(std::memory_order_acquire); n > 0) {
      misuse(fmt::format("a simulated GPU: {} bytes of device {} are freed while {} have them open",
                         memory.bytes, memory.device, n));
    }
    munmap(at, memory.bytes + kPage);
    close(memory.file);
    known_.erase(found);
    return Success;
  }
  ApiError describe(MemoryHandle* handle, void* at) {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(at);
    if (found == known_.end()) return ErrorInvalidValue;
    *handle = {static_cast<std::uint64_t>(getpid()),
               static_cast<std::uint64_t>(found->second.file),
               found->second.bytes,
               static_cast<std::uint64_t>(found->second.device),
               {}};
    return Success;
  }
  ApiError open(void** at, const MemoryHandle& handle) {
    const int device = static_cast<int>(handle.device);
    if (!has_access(current_device, device)) return ErrorPeerAccessUnsupported;
    const std::string path = fmt::format("/proc/{}/fd/{}", handle.process, handle.descriptor);
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return ErrorInvalidValue;
    if (!map(at, file, handle.bytes)) {
      close(file);
      return ErrorMemoryAllocation;
    }
    openers_of(*at, handle.bytes).fetch_add(1, std::memory_order_acq_rel);
    const std::lock_guard lock(mutex_);
    known_[*at] = {file, handle.bytes, device, true};
    return Success;
  }
  static std::size_t memory() {
    return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
           static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  }

 private:
  struct Allocation {
    int file;
    std::size_t bytes;  // whole pages, without the last
    int device;
    bool is_opened;  // another process's
  };
  static std::atomic_ref<std::uint64_t> openers_of(void* at, std::size_t bytes) {
    return std::atomic_ref<std::uint64_t>(
        *reinterpret_cast<std::uint64_t*>(static_cast<std::byte*>(at) + bytes));
  }
  static bool map(void** at, int file, std::size_t bytes) {
    *at = mmap(nullptr, bytes + kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    return *at != MAP_FAILED;
  }
  std::mutex mutex_;
  std::map<void*, Allocation> known_;
};
Allocations& allocations() {
  static Allocations all;
  return all;
}

/// Whole pages of zeros are none: memory is touched where it is used.
void fill(void* at, int value, std::size_t bytes) {
  auto* first = static_cast<std::byte*>(at);
  std::byte* const last = first + bytes;
  const auto address = reinterpret_cast<std::uintptr_t>(first);
  std::byte* const page = first + (whole_pages(address) - address);
  if (value == 0 && page + kPage <= last) {
    const std::size_t pages = static_cast<std::size_t>(last - page) / kPage * kPage;
    if (madvise(page, pages, MADV_REMOVE) == 0) {
      std::memset(first, 0, static_cast<std::size_t>(page - first));
      std::memset(page + pages, 0, static_cast<std::size_t>(last - (page + pages)));
      return;
    }
  }
  std::memset(at, value, bytes);
}

/// What a kernel reads while it is written comes in whole words, the last one after the others.
void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == sizeof(std::uint64_t) && reinterpret_cast<std::uintptr_t>(to) % sizeof(std::uint64_t) == 0) {
    std::uint64_t word;
    std::memcpy(&word, from, sizeof word);
    std::atomic_ref<std::uint64_t>(*static_cast<std::uint64_t*>(to)).store(word, std::memory_order_release);
    return;
  }
  std::memcpy(to, from, bytes);
}

}  // namespace

/// A stream: threads that run its kernels' groups, kernel after kernel.
class Queue {
 public:
  explicit Queue(int device) : device_{device} {
    for (std::thread& processor : processors_) processor = std::thread([this] { work(); });
    const std::lock_guard lock(all_mutex);
    all.insert(this);
  }
  ~Queue() {
    {
      const std::lock_guard lock(all_mutex);
      all.erase(this);
    }
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    news_.notify_all();
    for (std::thread& processor : processors_) processor.join();
  }
  void add(std::uint32_t groups, std::function<void(std::uint32_t)> group) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back({groups, 0, 0, std::move(group)});
      ++added_;
    }
    news_.notify_all();
  }
  bool is_empty() {
    const std::lock_guard lock(mutex_);
    return tasks_.empty();
  }
  /// For what has been added so far.
  void wait() {
    std::unique_lock lock(mutex_);
    news_.wait(lock, [&, last = added_] { return added_ - tasks_.size() >= last; });
  }
  static void wait_for_all(int device) {
    const std::lock_guard lock(all_mutex);
    for (Queue* const queue : all) {
      if (queue->device_ == device) queue->wait();
    }
  }

 private:
  struct Task {
    std::uint32_t groups, next, ended;
    std::function<void(std::uint32_t)> group;
  };
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      news_.wait(lock, [&] {
        return (!tasks_.empty() && tasks_.front().next < tasks_.front().groups) ||
               (stopping_ && tasks_.empty());
      });
      if (tasks_.empty()) return;
      Task& task = tasks_.front();  // a deque's elements stay where they are
      const std::uint32_t group = task.next++;
      lock.unlock();
      task.group(group);
      lock.lock();
      if (++task.ended == task.groups) {
        tasks_.pop_front();
        news_.notify_all();
      }
    }
  }

  static std::mutex all_mutex;
  static std::set<Queue*> all;

  const int device_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<Task> tasks_;
  std::uint64_t added_ = 0;
  bool stopping_ = false;
  std::array<std::thread, kProcessors> processors_;
};
std::mutex Queue::all_mutex;
std::set<Queue*> Queue::all;

namespace {
Queue& queue_of(Stream stream) {
  static Queue unnamed(0);
  return stream == nullptr ? unnamed : *stream;
}
}  // namespace

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
  *count = kDevices;
  return Success;
}
ApiError GetDevice(int* device) {
  *device = current_device;
  return Success;
}
ApiError SetDevice(int device) {
  current_device = device;
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
ApiError DeviceSynchronize() {
  Queue::wait_for_all(current_device);
  return Success;
}
ApiError DeviceEnablePeerAccess(int device, unsigned) {
  return has_access(current_device, device) ? Success : ErrorPeerAccessUnsupported;
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

ApiError MemGetInfo(std::size_t* free, std::size_t* total) {
  *free = Allocations::memory() / kDevices;
  *total = Allocations::memory();
  return Success;
}
ApiError Malloc(void** at, std::size_t bytes) { return allocations().allocate(at, bytes); }
ApiError MallocManaged(void** at, std::size_t bytes) { return allocations().allocate(at, bytes); }
ApiError Free(void* at) { return allocations().release(at); }
ApiError IpcGetMemHandle(MemoryHandle* handle, void* at) { return allocations().describe(handle, at); }
ApiError IpcOpenMemHandle(void** at, MemoryHandle handle, unsigned) { return allocations().open(at, handle); }
ApiError IpcCloseMemHandle(void* at) { return allocations().release(at); }

ApiError DeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return Success;
}
ApiError StreamCreateWithFlags(Stream* stream, unsigned) {
  *stream = new Queue(current_device);
  return Success;
}
ApiError StreamCreateWithPriority(Stream* stream, unsigned flags, int) {
  return StreamCreateWithFlags(stream, flags);
}
ApiError StreamDestroy(Stream stream) {
  delete stream;
  return Success;
}
ApiError StreamQuery(Stream stream) { return queue_of(stream).is_empty() ? Success : ErrorNotReady; }
ApiError StreamSynchronize(Stream stream) {
  queue_of(stream).wait();
  return Success;
}
ApiError Memcpy(void* to, const void* from, std::size_t bytes, MemcpyKind) {
  copy(to, from, bytes);
  return Success;
}
ApiError MemcpyAsync(void* to, const void* from, std::size_t bytes, MemcpyKind, Stream stream) {
  queue_of(stream).add(1, [=](std::uint32_t) { copy(to, from, bytes); });
  return Success;
}
ApiError Memset(void* at, int value, std::size_t bytes) {
  fill(at, value, bytes);
  return Success;
}
ApiError MemsetAsync(void* at, int value, std::size_t bytes, Stream stream) {
  queue_of(stream).add(1, [=](std::uint32_t) { fill(at, value, bytes); });
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
void launch(Stream stream, std::uint32_t groups, std::uint32_t group_lanes, std::uint32_t scratch_bytes,
            std::function<void()> lane) {
  queue_of(stream).add(groups, [=, lane = std::move(lane)](std::uint32_t group) {
    run_group(
        group, groups, group_lanes, scratch_bytes,
        [](const void* self) { (*static_cast<const std::function<void()>*>(self))(); }, &lane);
  });
}

}  // namespace esker::simulated
