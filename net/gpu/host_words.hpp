// The words in host memory by which lanes tell the host something.
#pragma once

#include <cstdint>
#include <type_traits>

#include <esker/device/atomic.hpp>
#include <esker/net/gpu/fault_report.hpp>
#include <esker/net/gpu/frame_layout.hpp>
#include <esker/net/gpu/totals.hpp>

namespace esker::gpu {

/// In pinned memory, zeroed.
///
/// Ordering.
///   [progress]  a progress kernel's snapshot     happens before  the host reads it
///   [fault]     the first fault report           happens before  the host reads it
///   [frame]     all updates of a frame's chunks  happen before   the host gives its slot to another frame
///               replies to its requests          happen before   the host sends them
struct HostWords {
  ProgressSnapshot snapshot;
  SystemAtomic<std::uint64_t> progress_kernel;  // number of the last one that has ended; [progress]
  SystemAtomic<std::uint32_t> starving;         // 1: lanes wait for space at peers, or at the host
  SystemAtomic<std::uint32_t> calls_handlers;   // 1: lanes have sent active messages
  SystemAtomic<std::uint32_t> fault;            // 1: `report` is valid; [fault]
  FaultReport report;
  SystemAtomic<std::uint64_t> frame_done[kFrames];  // generation whose chunks are all applied; [frame]
};
static_assert(std::is_standard_layout_v<HostWords>, "host and device compile it separately");

}  // namespace esker::gpu
