// Blocks that a group of lanes asks for, and active messages of any size from a lane of the host.
#pragma once

#include <cstdint>
#include <type_traits>

#include <esker/device/platform.hpp>
#include <esker/runtime/block_operations.hpp>
#include <esker/runtime/group_item.hpp>
#include <esker/shmem.hpp>

namespace esker {

namespace detail {

ESKER_PASS_BEGIN

#if defined(ESKER_ON_GPU)
/// The heap of `pe`, where lanes here reach it; else null.
ESKER_HD inline std::byte* heap_in_reach(const gpu::PeState& pe_state, std::uint32_t pe) {
  const std::uint32_t bin = pe_state.bin(pe);
  if (bin == gpu::kSelf) return pe_state.heap.base;
  return bin == gpu::kNetwork ? nullptr : pe_state.heap_of[bin];
}

struct alignas(16) Unit16 {
  std::uint64_t halves[2];
};
/// Units of a block of `bytes` at `to`: single bytes up to the first aligned one, then units of 16 bytes, or
/// 8, if `from` is aligned alike, then single bytes. Each lane calls `one(at, Unit{})` for its own.
template <class One>
ESKER_HD void for_each_unit(std::uint64_t to, std::uint64_t from, std::uint64_t bytes, std::uint32_t lane,
                            std::uint32_t lanes, const One& one) {
  const std::uint64_t unit = (to ^ from) % 16 == 0 ? 16 : (to ^ from) % 8 == 0 ? 8 : 1;
  std::uint64_t head = (unit - to % unit) % unit;
  if (head > bytes) head = bytes;
  const std::uint64_t units = (bytes - head) / unit, tail = head + units * unit;
  for (std::uint64_t i = lane; i < head; i += lanes) one(i, std::uint8_t{});
  for (std::uint64_t i = lane; i < units; i += lanes) {
    if (unit == 16) {
      one(head + i * 16, Unit16{});
    } else if (unit == 8) {
      one(head + i * 8, std::uint64_t{});
    } else {
      one(head + i, std::uint8_t{});
    }
  }
  for (std::uint64_t i = tail + lane; i < bytes; i += lanes) one(i, std::uint8_t{});
}

template <class Item, class T>
ESKER_HD void group_block(Item& item, const char* call, bool gets, T* target, const T* source,
                          std::uint64_t count, std::uint32_t pe) {
  const std::uint64_t bytes = count * sizeof(T);
  if (bytes == 0) return;
  const void* const far = gets ? static_cast<const void*>(source) : target;
  const std::uint64_t address = checked_address(item, call, far, bytes, 1, pe);
  if (address == kNoAddress) return;
  const auto& pe_state = *SenderAccess::pe_state(item);
  auto* to = reinterpret_cast<std::byte*>(target);
  const auto* from = reinterpret_cast<const std::byte*>(source);
  const auto aligned = [](const void* at) { return reinterpret_cast<std::uintptr_t>(at); };
  if (std::byte* const heap = heap_in_reach(pe_state, pe); heap != nullptr) {
    std::byte* const there = heap + (address & kOffsetMask);
    if (gets) {
      from = there;
    } else {
      to = there;
    }
    for_each_unit(aligned(to), aligned(from), bytes, item.lane(), item.group_lanes(),
                  [&](auto at, auto unit) {
                    using Unit = decltype(unit);
                    *reinterpret_cast<Unit*>(to + at) = *reinterpret_cast<const Unit*>(from + at);
                  });
    return;
  }
  for_each_unit(aligned(to), aligned(from), bytes, item.lane(), item.group_lanes(), [&](auto at, auto unit) {
    using Unit = decltype(unit);
    auto* const to_unit = reinterpret_cast<Unit*>(to + at);
    const auto* const from_unit = reinterpret_cast<const Unit*>(from + at);
    if (gets) {
      shmem_get(item, to_unit, from_unit, pe);
    } else {
      shmem_put(item, to_unit, *from_unit, pe);
    }
  });
}
#else
template <class T>
void group_block(GroupItem& item, const char* call, bool gets, T* target, const T* source,
                 std::uint64_t count, std::uint32_t pe) {
  if (item.lane() != 0) return;
  SenderAccess::services(item).start_block({call, gets, target, source, sizeof(T), BlockShape{count}, pe},
                                           SenderAccess::caller(item));
}
#endif

ESKER_PASS_END

}  // namespace detail

/// All lanes of the group call, with the same arguments: `count` elements from `source` to `target` on PE
/// `pe`. Contract and misuse are put_block()'s. On a GPU, `source` is in memory that its lanes read; lanes
/// write a heap that they reach, and else each sends a part by puts, of 16 bytes where both ends are aligned
/// alike.
template <class Item, class T>
ESKER_HD void shmem_put_block(Item& item, T* target, const std::type_identity_t<T>* source,
                              std::uint64_t count, std::uint32_t pe) {
  static_assert(std::is_trivially_copyable_v<T>);
  detail::group_block(item, "shmem_put_block", false, target, static_cast<const T*>(source), count, pe);
}
/// The other way. `result` is in this PE's heap.
template <class Item, class T>
ESKER_HD void shmem_get_block(Item& item, T* result, const std::type_identity_t<T>* source,
                              std::uint64_t count, std::uint32_t pe) {
  static_assert(std::is_trivially_copyable_v<T>);
  detail::group_block(item, "shmem_get_block", true, result, static_cast<const T*>(source), count, pe);
}

#if defined(ESKER_ON_CPU)
/// Runtime::call_bytes() from a lane of the host, a WorkItem or GroupItem. Device code has none.
template <class Context, class Target>
void shmem_am_bytes(Context&& context, BytesHandler<Target> handler, Target* target,
                    std::span<const std::byte> bytes, std::uint32_t pe) {
  detail::SenderAccess::sink(context).send_bytes({"shmem_am_bytes", handler.index, target, sizeof(Target),
                                                  alignof(Target), bytes.data(), bytes.size(), pe},
                                                 detail::SenderAccess::caller(context));
}
#endif

}  // namespace esker
