// What launches on CUDA and HIP share. For sources that a device compiler compiles.
#pragma once

#include <cstdint>
#include <esker/device/group.hpp>
#include <esker/device/platform.hpp>
#include <string>
#include <type_traits>

// A kernel's argument that is read in place, not copied by every lane that takes its address.
#if defined(__CUDACC__)
#define ESKER_GRID_CONSTANT __grid_constant__
#else
#define ESKER_GRID_CONSTANT
#endif

namespace esker::gpu {

/// One group a block. Lanes that the last group does not have end before its first barrier, which does
/// not wait for them.
/// A group has up to 1024 lanes, so a lane has a 1024th of a processor's registers at most; or as many lanes
/// as Body::kMostGroupLanes says, and the processor then holds kGroupsHeld of them: more registers, fewer
/// waves.
template <class Body>
inline constexpr int kMostGroupLanes = [] {
  if constexpr (requires { Body::kMostGroupLanes; }) return static_cast<int>(Body::kMostGroupLanes);
  return 1024;
}();
inline constexpr int kGroupsHeld = 3;
template <class Body>
__global__ void __launch_bounds__(kMostGroupLanes<Body>, kMostGroupLanes<Body> == 1024 ? 1 : kGroupsHeld)
    run_lanes([[maybe_unused]] const LaunchShape shape,
              [[maybe_unused]] const ESKER_GRID_CONSTANT Body body) {
#if !defined(ESKER_ON_CPU)
  const std::uint64_t group = blockIdx.x;
  const std::uint32_t lane = threadIdx.x, lanes = shape.lanes_of(group);
  if (lane >= lanes) return;
  if constexpr (std::is_invocable_v<const Body&, Lane>) {
    body(Lane(shape, group, lane, lanes));
  } else {
    GroupLane self(shape, group, lane, lanes);
    body(self);
  }
#endif
}

/// Starts `body` on `stream` and does not wait for it. Returns what went wrong, or "". `last_error` is the
/// back end's: what its runtime says of the launch, or "".
template <class Stream, class Body>
std::string launch(const LaunchShape& shape, Stream stream, const Body& body, std::string (*last_error)()) {
  // It travels as a kernel argument. A lambda for both sides is not trivially copyable, and may all the same.
  static_assert(std::is_copy_constructible_v<Body>);
  if (shape.lanes == 0) return "";
  if (shape.group_lanes == 0 || shape.group_lanes > 1024 || shape.groups() > 0x7fffffffu) {
    return "launch of " + std::to_string(shape.lanes) + " lanes in groups of " +
           std::to_string(shape.group_lanes) +
           ": a group has 1 to 1024 lanes, a launch fewer than 2^31 groups";
  }
  const dim3 blocks(static_cast<unsigned>(shape.groups()));
  run_lanes<<<blocks, dim3(shape.group_lanes), 0, stream>>>(shape, body);
  const std::string error = last_error();
  if (error.empty()) return "";
  return "launch of " + std::to_string(shape.groups()) + " groups of " + std::to_string(shape.group_lanes) +
         " lanes: " + error;
}

/// Groups of `group_lanes` lanes of this kernel that the current device holds at a time, by what
/// the back end says of one processor; at least 1.
template <class Body, class BlocksAProcessor>
std::uint64_t resident_groups(std::uint32_t group_lanes, std::uint32_t processors, BlocksAProcessor blocks) {
  const std::uint64_t all = std::uint64_t{processors} * blocks(run_lanes<Body>, group_lanes);
  return all == 0 ? 1 : all;
}

}  // namespace esker::gpu
