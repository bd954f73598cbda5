// Allocating the symmetric heap, and the host's access to it.
#include <algorithm>
#include <esker/net/gpu/engine/heap.hpp>

namespace esker::gpu {
namespace {

// Where the user names no size. Pinned memory is page-locked all at once, at a second for a few GiB.
constexpr std::uint64_t kPinnedBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kUnitBytes = std::uint64_t{2} << 20;

}  // namespace

Heap::Heap(const OpenedDevice& device, const DeviceSettings& settings)
    : device_{device}, limit_bytes_{settings.heap_bytes} {
  if (limit_bytes_ == 0) {
    device_.use();
    std::size_t free = 0;
    std::size_t total = 0;
    require(ESKER_GPU(MemGetInfo)(&free, &total), "asking for the device's memory");
    const std::uint32_t sharers = (settings.pes_on_host + device_.devices() - 1) / device_.devices();
    limit_bytes_ = settings.heap_on_device ? free / 2 / std::max(1u, sharers) : kPinnedBytes;
  }
  limit_bytes_ = (limit_bytes_ + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
  const Allocation what{"the symmetric heap (heap_bytes)", false};
  if (settings.heap_on_device) {
    on_device_ = device_.device().memory<std::byte>(limit_bytes_, what);
    base_ = on_device_.data();
  } else {
    on_host_ = device_.device().pinned<std::byte>(limit_bytes_, what);
    base_ = on_host_.data();
  }
}

void Heap::clear(std::uint64_t offset, std::uint64_t bytes) const {
  device_.use();
  require(ESKER_GPU(MemsetAsync)(base_ + offset, 0, bytes, device_.user_stream()), "clearing the heap");
  device_.wait_for(device_.user_stream(), "clearing the heap");
}

void Heap::read(std::uint64_t offset, void* to, std::uint64_t bytes) const {
  device_.use();
  device_.copy(to, base_ + offset, bytes, device_.user_stream(), "reading the heap");
  device_.wait_for(device_.user_stream(), "reading the heap");
}

void Heap::write(std::uint64_t offset, const void* from, std::uint64_t bytes) const {
  device_.use();
  device_.copy(base_ + offset, from, bytes, device_.user_stream(), "writing the heap");
  device_.wait_for(device_.user_stream(), "writing the heap");
}

}  // namespace esker::gpu
