// What launches on CUDA and HIP share. For sources that a device compiler compiles.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include <esker/device/gpu/api.hpp>
#include <esker/device/gpu/occupancy.hpp>
#include <esker/device/group.hpp>
#include <esker/device/platform.hpp>

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
/// as Body::kMostGroupLanes says, and the processor then holds kGroupsHeld of them, or as many as
/// Body::kGroupsHeld says: more registers, fewer waves.
template <class Body>
inline constexpr int kMostGroupLanes = [] {
  if constexpr (requires { Body::kMostGroupLanes; }) return static_cast<int>(Body::kMostGroupLanes);
  return 1024;
}();
template <class Body>
inline constexpr int kLeastGroups = [] {
  if constexpr (kMostGroupLanes<Body> == 1024) return 1;
  if constexpr (requires { Body::kGroupsHeld; }) return static_cast<int>(Body::kGroupsHeld);
  return static_cast<int>(kGroupsHeld);
}();
template <class Body>
__global__ void __launch_bounds__(kMostGroupLanes<Body>, kLeastGroups<Body>)
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

/// Starts `body` on `stream`, a Stream as void*, and does not wait for it. Returns what went wrong, or "".
/// Each group takes so many bytes of scratchpad beside what it declares.
template <class Body>
std::string launch_on_device(const LaunchShape& shape, void* stream, const Body& body,
                             std::uint32_t scratch_bytes = 0) {
  // It travels as a kernel argument. A lambda for both sides is not trivially copyable, and may all the same.
  static_assert(std::is_copy_constructible_v<Body>);
  if (shape.lanes == 0) return "";
  if (shape.group_lanes == 0 || shape.group_lanes > 1024 || shape.groups() > 0x7fffffffu) {
    return "launch of " + std::to_string(shape.lanes) + " lanes in groups of " +
           std::to_string(shape.group_lanes) +
           ": a group has 1 to 1024 lanes, a launch fewer than 2^31 groups";
  }
  ESKER_GPU_START(run_lanes<Body>, static_cast<unsigned>(shape.groups()), shape.group_lanes, scratch_bytes,
                  static_cast<Stream>(stream), shape, body);
  const ApiError error = ESKER_GPU(GetLastError)();
  if (error == ESKER_GPU(Success)) return "";
  return "launch of " + std::to_string(shape.groups()) + " groups of " + std::to_string(shape.group_lanes) +
         " lanes: " + ESKER_GPU(GetErrorString)(error);
}

/// A kernel's entry, which the device's runtime knows it by. Of a source that a device compiler compiles:
/// each program, or shared library, that holds a copy of that runtime asks its own about its own kernels.
class CompiledKernel final : public KernelFacts {
 public:
  template <class Kernel>
  explicit CompiledKernel(Kernel* entry) : entry_{reinterpret_cast<const void*>(entry)} {}

  std::uint32_t declared_scratch() const override {
    return static_cast<std::uint32_t>(attributes().sharedSizeBytes);
  }
  std::uint32_t groups_a_processor(std::uint32_t group_lanes, std::uint32_t lent_bytes) const override {
    int groups = 0;
    (void)ESKER_GPU(OccupancyMaxActiveBlocksPerMultiprocessor)(&groups, entry_, static_cast<int>(group_lanes),
                                                               lent_bytes);
    return static_cast<std::uint32_t>(groups);
  }
  bool allow_scratch(std::uint32_t bytes) const override {
    const ApiError error = ESKER_GPU(FuncSetAttribute)(entry_, kScratchAttribute, static_cast<int>(bytes));
    if (error != ESKER_GPU(Success)) (void)ESKER_GPU(GetLastError)();
    return error == ESKER_GPU(Success);
  }
  FunctionAttributes attributes() const {
    FunctionAttributes attributes{};
    (void)ESKER_GPU(FuncGetAttributes)(&attributes, entry_);
    return attributes;
  }

 private:
  const void* entry_;
};
/// What launch_on_device() runs for this body.
template <class Body>
CompiledKernel compiled() {
  return CompiledKernel(run_lanes<Body>);
}

}  // namespace esker::gpu
