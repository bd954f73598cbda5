// mmap, huge pages and a first-fit list.
#include <esker/runtime/heap_memory.hpp>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>

#include <esker/device/error.hpp>
#include <esker/shmem.hpp>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_READ 22  // Linux 5.14
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // Linux 6.1
#endif

namespace esker {
namespace {

constexpr std::size_t kHugePage = shared::Segment::kHugePage;
// More than any address space: what is rounded up from it, and a page more, can still be said.
constexpr std::uint64_t kMostBytes = std::numeric_limits<std::uint64_t>::max() / 2;

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

/// "MemAvailable:  123 kB" in bytes; 0 if there is no such line.
std::uint64_t read_meminfo(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::uint64_t kib = 0;
  std::string unit;
  while (file >> key >> kib) {
    std::getline(file, unit);
    if (key == name + ":") return kib * 1024;
  }
  return 0;
}

/// A number in a control group's file; nothing if there is no limit.
std::optional<std::uint64_t> read_limit(const char* path) {
  std::ifstream file(path);
  std::uint64_t bytes = 0;
  if (file >> bytes && bytes < (std::uint64_t{1} << 60)) return bytes;
  return std::nullopt;
}

}  // namespace

std::string in_mib(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::uint64_t available_host_bytes() {
  std::uint64_t bytes = read_meminfo("MemAvailable");
  const auto limit = read_limit("/sys/fs/cgroup/memory.max");
  const auto used = read_limit("/sys/fs/cgroup/memory.current");
  if (limit && used) bytes = std::min(bytes, *limit > *used ? *limit - *used : 0);
  return bytes;
}

std::uint64_t total_host_bytes() {
  const std::uint64_t bytes = read_meminfo("MemTotal");
  return std::min(bytes, read_limit("/sys/fs/cgroup/memory.max").value_or(bytes));
}

std::optional<std::uint64_t> address_space_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

std::uint64_t address_space_left() {
  const auto limit = address_space_limit();
  if (!limit) return std::numeric_limits<std::uint64_t>::max();
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  file >> pages;
  const std::uint64_t mapped = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return *limit > mapped ? *limit - mapped : 0;
}

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  file >> pages >> pages;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

HeapMemory::HeapMemory(std::uint64_t limit_bytes, bool huge_pages, bool may_share)
    : huge_pages_{huge_pages}, limit_{round_up(std::min(limit_bytes, kMostBytes), kHugePage)} {
  if (may_share && try_share()) return;
  mapping_bytes_ = limit_ + kHugePage;
  void* const mapping = mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    throw Error(Error::Kind::kOutOfMemory,
                fmt::format("the symmetric heap of {} MiB cannot be reserved: {}{}; lower --heap-bytes "
                            "(ESKER_HEAP_BYTES)",
                            limit_bytes >> 20, std::strerror(errno),
                            address_space_limit()
                                ? fmt::format(" within the {} MiB of address space that a process may have "
                                              "(ulimit -v)",
                                              *address_space_limit() >> 20)
                                : ""));
  }
  mapping_ = static_cast<std::byte*>(mapping);
  base_ = mapping_ + (kHugePage - reinterpret_cast<std::uintptr_t>(mapping_) % kHugePage) % kHugePage;
  if (huge_pages) madvise(base_, limit_, MADV_HUGEPAGE);  // without them it is only slower
}

HeapMemory::~HeapMemory() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

bool HeapMemory::try_share() {
  segment_ = std::make_unique<shared::Segment>(limit_);
  why_private_ = segment_->make();
  base_ = segment_->at();
  if (why_private_.empty() && huge_pages_ && !collapse(0, 1))
    why_private_ = fmt::format("no huge pages for shared memory (MADV_COLLAPSE: {})", std::strerror(errno));
  if (why_private_.empty()) {
    madvise(base_, kHugePage, MADV_REMOVE);  // that was a trial
    return true;
  }
  segment_.reset();
  return false;
}

bool HeapMemory::collapse(std::uint64_t first, std::uint64_t last) {
  // It takes a small page that is there, and neighbours to which messages may be under way.
  const auto small = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (std::uint64_t page = first; page < last; ++page)
    if (madvise(base_ + page * kHugePage, small, MADV_POPULATE_READ) != 0) return false;
  return madvise(base_ + first * kHugePage, (last - first) * kHugePage, MADV_COLLAPSE) == 0;
}

void HeapMemory::make_huge_pages(std::uint64_t offset, std::uint64_t end) {
  const std::uint64_t last = (end + kHugePage - 1) / kHugePage;
  if (is_huge_.size() < last) is_huge_.resize(last);
  for (std::uint64_t page = offset / kHugePage; page < last; ++page) {
    const std::uint64_t first = page;
    while (page < last && !is_huge_[page]) is_huge_[page++] = true;
    // One call for all: each waits until every core of the host has put aside what it has in hand, behind
    // those of other processes.
    if (page != first) (void)collapse(first, page);  // without them it is only slower
  }
}

std::optional<std::uint64_t> HeapMemory::find(std::uint64_t bytes, std::uint64_t alignment) const {
  if (bytes > limit_) return std::nullopt;
  bytes = round_up(std::max<std::uint64_t>(bytes, 1), SymmetricHeap::kAlignment);
  std::uint64_t at = 0;
  for (const auto& [offset, size] : blocks_) {
    if (offset >= at && offset - at >= bytes) return at;
    at = round_up(offset + size, alignment);
  }
  if (at > limit_ || limit_ - at < bytes) return std::nullopt;
  return at;
}

bool HeapMemory::take(std::uint64_t offset, std::uint64_t bytes) {
  bytes = round_up(std::max<std::uint64_t>(bytes, 1), SymmetricHeap::kAlignment);
  const std::uint64_t end = offset + bytes;
  if (clear_) {
    clear_(offset, bytes);
  } else if (!take_own(offset, end)) {
    return false;
  }
  blocks_[offset] = bytes;
  allocated_ += bytes;
  end_.store(std::max(end_.load(std::memory_order_relaxed), end), std::memory_order_release);
  return true;
}

bool HeapMemory::take_own(std::uint64_t offset, std::uint64_t end) {
  if (segment_ && huge_pages_) make_huge_pages(offset, end);
  const std::uint64_t old_end = std::min(end, std::max(offset, touched_));
  std::memset(base_ + offset, 0, old_end - offset);
  if (end > old_end) {
    // Page by page now, not one fault at a time under the first messages.
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    const std::uint64_t first = old_end / page * page;
    if (madvise(base_ + first, round_up(end, page) - first, MADV_POPULATE_WRITE) != 0) {
      if (errno == ENOMEM || errno == EFAULT || errno == EHWPOISON) return false;
      std::memset(base_ + old_end, 0, end - old_end);  // an older kernel
    }
  }
  touched_ = std::max(touched_, end);
  return true;
}

bool HeapMemory::release(std::uint64_t offset) {
  const auto block = blocks_.find(offset);
  if (block == blocks_.end()) return false;
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t first = round_up(offset, page);
  const std::uint64_t last = (offset + block->second) / page * page;
  if (last > first && !clear_) {
    madvise(base_ + first, last - first, segment_ ? MADV_REMOVE : MADV_DONTNEED);
    const std::uint64_t n_huge = std::min<std::uint64_t>((last + kHugePage - 1) / kHugePage, is_huge_.size());
    for (std::uint64_t huge = first / kHugePage; huge < n_huge; ++huge) is_huge_[huge] = false;
  }
  allocated_ -= block->second;
  blocks_.erase(block);
  return true;
}

}  // namespace esker
