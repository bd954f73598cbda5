// The words in device memory that kernels of one PE share, each on a line of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <esker/device/atomic.hpp>
#include <esker/device/platform.hpp>

namespace esker::gpu {

/// The sum of what the groups of a progress kernel have come to.
struct ProgressResult {
  std::uint64_t moved;
  std::uint64_t waiting;  // waiting_bit()s
};

/// Zeroed. The host writes heap_end and abandoned, by copies in the order of a stream.
struct DeviceWords {
  alignas(kLineBytes) DeviceAtomic<std::uint32_t> fault_taken;      // 1: a lane has a fault to report
  alignas(kLineBytes) DeviceAtomic<std::uint32_t> progress_groups;  // of a progress kernel, that have ended
  alignas(kLineBytes) ProgressResult progress_result;
  /// Of this moment: the heap may have grown since a kernel's PE state was copied.
  alignas(kLineBytes) DeviceAtomic<std::uint64_t> heap_end;
  /// 1: the host no longer empties what lanes fill. Thousands of waves poll it while they wait.
  alignas(kLineBytes) DeviceAtomic<std::uint32_t> abandoned;
};
static_assert(std::is_standard_layout_v<DeviceWords>, "host and device compile it separately");
static_assert(offsetof(DeviceWords, fault_taken) == 0 &&
                  offsetof(DeviceWords, progress_groups) == kLineBytes &&
                  offsetof(DeviceWords, progress_result) == 2 * kLineBytes &&
                  offsetof(DeviceWords, heap_end) == 3 * kLineBytes &&
                  offsetof(DeviceWords, abandoned) == 4 * kLineBytes && sizeof(DeviceWords) == 5 * kLineBytes,
              "host and device agree");

}  // namespace esker::gpu
