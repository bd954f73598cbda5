// A GPU of threads: memory, which other processes of the host can reach.
#include <esker/device/error.hpp>
#include <esker/device/simulated/api.hpp>
#include <esker/device/simulated/parts.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <string>

namespace esker::simulated {
namespace {

constexpr std::size_t kPage = 4096;
std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

/// Memory that other processes of the host can reach, by its file. Behind it stands how many have it open.
class Allocations {
 public:
  ApiError allocate(void** at, std::size_t bytes, MemoryPlace place) {
    if (bytes == 0 || bytes > memory()) return ErrorMemoryAllocation;
    bytes = whole_pages(bytes);
    const int file = memfd_create("esker", MFD_CLOEXEC);
    if (file < 0) return ErrorMemoryAllocation;
    if (ftruncate(file, static_cast<off_t>(bytes + kPage)) != 0 || !map(at, file, bytes)) {
      close(file);
      return ErrorMemoryAllocation;
    }
    const std::lock_guard lock(mutex_);
    const int device = place == MemoryPlace::kPinned ? -1 : current_device();
    known_[*at] = {file, bytes, device, false, place};
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
  int device_of(const void* at) {
    const std::lock_guard lock(mutex_);
    auto found = known_.upper_bound(const_cast<void*>(at));
    if (found == known_.begin()) return -1;
    --found;
    const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(at) -
                                                 static_cast<const std::byte*>(found->first));
    return offset < found->second.bytes ? found->second.device : -1;
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
    if (!has_access(current_device(), device)) return ErrorPeerAccessUnsupported;
    const std::string path = fmt::format("/proc/{}/fd/{}", handle.process, handle.descriptor);
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return ErrorInvalidValue;
    if (!map(at, file, handle.bytes)) {
      close(file);
      return ErrorMemoryAllocation;
    }
    openers_of(*at, handle.bytes).fetch_add(1, std::memory_order_acq_rel);
    const std::lock_guard lock(mutex_);
    known_[*at] = {file, handle.bytes, device, true, MemoryPlace::kDevice};
    return Success;
  }
  MemoryRange range_of(const void* at) {
    const std::lock_guard lock(mutex_);
    const auto after = known_.upper_bound(const_cast<void*>(at));
    if (after == known_.begin()) return {};
    const auto& [begin, memory] = *std::prev(after);
    const MemoryRange range{memory.place, static_cast<std::uint32_t>(std::max(memory.device, 0)),
                            static_cast<const std::byte*>(begin), memory.bytes};
    return range.holds(at) ? range : MemoryRange{};
  }
  static std::size_t memory() {
    return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
           static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  }

 private:
  struct Allocation {
    int file;
    std::size_t bytes;  // whole pages, without the last
    int device;         // -1: the host's
    bool is_opened;     // another process's
    MemoryPlace place;
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

}  // namespace

int device_of(const void* at) { return allocations().device_of(at); }

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

void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == sizeof(std::uint64_t) && reinterpret_cast<std::uintptr_t>(to) % sizeof(std::uint64_t) == 0) {
    std::uint64_t word;
    std::memcpy(&word, from, sizeof word);
    std::atomic_ref<std::uint64_t>(*static_cast<std::uint64_t*>(to)).store(word, std::memory_order_release);
    return;
  }
  std::memcpy(to, from, bytes);
}

ApiError MemGetInfo(std::size_t* free, std::size_t* total) {
  *free = Allocations::memory() / kDevices;
  *total = Allocations::memory();
  return Success;
}
ApiError Malloc(void** at, std::size_t bytes) {
  return allocations().allocate(at, bytes, MemoryPlace::kDevice);
}
ApiError MallocManaged(void** at, std::size_t bytes) {
  return allocations().allocate(at, bytes, MemoryPlace::kManaged);
}
ApiError MallocHost(void** at, std::size_t bytes) {
  return allocations().allocate(at, bytes, MemoryPlace::kPinned);
}
MemoryRange range_of(const void* at) { return allocations().range_of(at); }
ApiError Free(void* at) { return allocations().release(at); }
ApiError IpcGetMemHandle(MemoryHandle* handle, void* at) { return allocations().describe(handle, at); }
ApiError IpcOpenMemHandle(void** at, MemoryHandle handle, unsigned) { return allocations().open(at, handle); }
ApiError IpcCloseMemHandle(void* at) { return allocations().release(at); }

}  // namespace esker::simulated
