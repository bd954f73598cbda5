// What the host's apply loops share: words of the heap, and the addresses of a run. Private to net/.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <esker/aggregator/wire.hpp>
#include <esker/device/error.hpp>
#include <esker/net/handler.hpp>

namespace esker::apply {

// A buffer shows its addresses ahead, which a plain random loop cannot: enough lines are under way to
// fill a core's miss buffers. 16 to 64 measured alike (docs/lab/cpu-message-path.md).
inline constexpr std::uint32_t kPrefetchAhead = 24;
inline constexpr std::uint32_t kBlock = 1024;

[[noreturn]] inline void bad_address(std::uint64_t offset, std::uint32_t bytes, std::uint64_t heap_bytes) {
  throw Error(
      Error::Kind::kNetwork,
      fmt::format("an operation of {} bytes at heap offset {:#x}, which is {} (the heap's allocated part "
                  "ends at {:#x})",
                  bytes, offset, offset % bytes != 0 ? "misaligned" : "outside", heap_bytes));
}

template <class T>
T load(const std::byte* at) {
  return std::atomic_ref<T>(*reinterpret_cast<T*>(const_cast<std::byte*>(at)))
      .load(std::memory_order_relaxed);
}
template <class T>
void store(std::byte* at, T value) {
  std::atomic_ref<T>(*reinterpret_cast<T*>(at)).store(value, std::memory_order_relaxed);
}

/// Which messages of a run are this slice's: all of them where there is one slice.
struct Slice {
  std::uint32_t index;
  std::uint32_t count;
  bool has(std::uint64_t offset) const { return (offset / kOwnershipBytes) % count == index; }
};

/// Throws if an address is misaligned or outside the heap. `bytes` is a power of two. The whole run first: no
/// branch an address, so it is a fraction of a nanosecond each, and the loops that touch the heap carry no
/// check. Called: in each of forty loops it would be 15 KB of a program.
[[gnu::noinline]] inline void check_addresses(const wire::Run& run, std::uint32_t bytes, HeapView heap) {
  const std::uint64_t last = heap.bytes - bytes;
  std::uint64_t low = 0;
  std::uint64_t high = 0;  // the top bit: an address beyond `last`, which is below 2^63
  for (std::uint32_t i = 0; i < run.count; ++i) {
    low |= run.address[i];
    high |= (last - run.address[i]) | run.address[i];
  }
  if ((low & (bytes - 1)) == 0 && high >> 63 == 0 && heap.bytes >= bytes) [[likely]]
    return;
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const std::uint64_t offset = run.address[i];
    if (heap.bytes < bytes || offset > last || offset % bytes != 0) bad_address(offset, bytes, heap.bytes);
  }
}

/// Throws if a handler's target is misaligned or outside the heap.
inline void check_target(const HandlerEntry& handler, std::uint64_t offset, HeapView heap) {
  const bool misaligned = offset % handler.target_alignment != 0;
  if (!misaligned && heap.bytes >= handler.target_bytes && offset <= heap.bytes - handler.target_bytes)
      [[likely]]
    return;
  throw Error(Error::Kind::kNetwork,
              fmt::format("handler '{}': a target of {} bytes at heap offset {:#x}, which is {} (the heap's "
                          "allocated part ends at {:#x})",
                          handler.name, handler.target_bytes, offset, misaligned ? "misaligned" : "outside",
                          heap.bytes));
}

/// Calls `one(i)` for each message of the slice in order, prefetching ahead.
template <std::uint32_t Bytes, class One>
std::uint32_t for_each_address(const wire::Run& run, HeapView heap, Slice slice, One one) {
  check_addresses(run, Bytes, heap);
  const std::uint64_t* const address = run.address;
  const auto prefetch = [&](std::uint32_t i) { __builtin_prefetch(heap.base + address[i], 1); };
  if (slice.count == 1) {
    const std::uint32_t ahead = std::min(kPrefetchAhead, run.count);
    for (std::uint32_t i = 0; i < ahead; ++i) prefetch(i);
    const std::uint32_t steady = run.count - ahead;
    for (std::uint32_t i = 0; i < steady; ++i) {
      prefetch(i + ahead);
      one(i);
    }
    for (std::uint32_t i = steady; i < run.count; ++i) one(i);
    return run.count;
  }
  std::uint32_t applied = 0;
  std::array<std::uint32_t, kBlock> mine;
  for (std::uint32_t begin = 0; begin < run.count; begin += kBlock) {
    const std::uint32_t end = std::min(run.count, begin + kBlock);
    std::uint32_t n = 0;
    for (std::uint32_t i = begin; i < end; ++i) {  // no branch on random data
      mine[n] = i;
      n += slice.has(run.address[i]) ? 1 : 0;
    }
    for (std::uint32_t k = 0; k < n; ++k) prefetch(mine[k]);
    for (std::uint32_t k = 0; k < n; ++k) one(mine[k]);
    applied += n;
  }
  return applied;
}

}  // namespace esker::apply
