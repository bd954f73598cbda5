// What launches on CUDA and HIP share. For sources that a device compiler compiles.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include <esker/device/gpu/api.hpp>
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
/// as Body::kMostGroupLanes says, and the processor then holds kGroupsHeld of them: more registers, fewer
/// waves.
template <class Body>
inline constexpr int kMostGroupLanes = [] {
  if constexpr (requires { Body::kMostGroupLanes; }) return static_cast<int>(Body::kMostGroupLanes);
  return 1024;
}();
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
#if !defined(ESKER_ON_SIMULATED)
  const dim3 blocks(static_cast<unsigned>(shape.groups()));
  run_lanes<<<blocks, dim3(shape.group_lanes), scratch_bytes, static_cast<Stream>(stream)>>>(shape, body);
#else
  simulated::launch(static_cast<Stream>(stream), static_cast<std::uint32_t>(shape.groups()),
                    shape.group_lanes, scratch_bytes, [shape, body] { run_lanes(shape, body); });
#endif
  const ApiError error = ESKER_GPU(GetLastError)();
  if (error == ESKER_GPU(Success)) return "";
  return "launch of " + std::to_string(shape.groups()) + " groups of " + std::to_string(shape.group_lanes) +
         " lanes: " + ESKER_GPU(GetErrorString)(error);
}

/// Of the current device; 0 if it does not say.
inline std::uint32_t device_attribute(DeviceAttribute which) {
  int device = 0;
  int value = 0;
  (void)ESKER_GPU(GetDevice)(&device);
  (void)ESKER_GPU(DeviceGetAttribute)(&value, which, device);
  return static_cast<std::uint32_t>(value);
}

/// Groups of `group_lanes` lanes of this kernel that one processor holds at a time.
template <class Body>
std::uint32_t groups_a_processor(std::uint32_t group_lanes, std::uint32_t scratch_bytes = 0) {
  int groups = 0;
  (void)ESKER_GPU(OccupancyMaxActiveBlocksPerMultiprocessor)(&groups, run_lanes<Body>,
                                                             static_cast<int>(group_lanes), scratch_bytes);
  return static_cast<std::uint32_t>(groups);
}

/// The same of the current device; at least 1.
template <class Body>
std::uint64_t resident_groups(std::uint32_t group_lanes, std::uint32_t scratch_bytes = 0) {
  const std::uint64_t all =
      std::uint64_t{device_attribute(kProcessors)} * groups_a_processor<Body>(group_lanes, scratch_bytes);
  return all == 0 ? 1 : all;
}

template <class Body>
FunctionAttributes attributes_of() {
  FunctionAttributes attributes{};
  (void)ESKER_GPU(FuncGetAttributes)(&attributes, reinterpret_cast<const void*>(run_lanes<Body>));
  return attributes;
}

/// Scratchpad that a kernel declares for a group.
template <class Body>
std::uint32_t declared_scratch() {
  return static_cast<std::uint32_t>(attributes_of<Body>().sharedSizeBytes);
}

// Beside what a group declares the device takes some for itself.
inline constexpr std::uint32_t kScratchAside = 1024;

/// A device gives scratchpad out in units, of 128 bytes on CUDA's and 512 on AMD's: the most that a group of
/// so many bytes takes. The least is what it asks for.
constexpr std::uint32_t in_scratch_units(std::uint32_t bytes) {
  constexpr std::uint32_t kUnit = 512;
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

/// What is left of a group's `share` of a processor's scratchpad beside what Body declares: whole KiB.
template <class Body>
std::uint32_t scratch_left_of(std::uint32_t share) {
  const std::uint32_t most = device_attribute(kGroupScratch) + kScratchAside;
  const std::uint32_t declared = in_scratch_units(declared_scratch<Body>() + kScratchAside);
  share = share < most ? share : most;
  return share <= declared ? 0 : (share - declared) / 1024 * 1024;
}

/// Lets launches of Body ask for so many bytes beside what it declares. False: the device refuses.
template <class Body>
bool allow_scratch(std::uint32_t bytes) {
  const ApiError error = ESKER_GPU(FuncSetAttribute)(reinterpret_cast<const void*>(run_lanes<Body>),
                                                     kScratchAttribute, static_cast<int>(bytes));
  if (error != ESKER_GPU(Success)) (void)ESKER_GPU(GetLastError)();
  return error == ESKER_GPU(Success);
}

/// Bytes of scratchpad, up to `most`, that groups of Body can be given for nothing: processors hold as many
/// groups as their registers allow. At least kLeastLent, which may keep some out.
inline constexpr std::uint32_t kLeastLent = 8192;
template <class Body>
std::uint32_t lend_scratch(std::uint32_t group_lanes, std::uint32_t most) {
  const std::uint32_t groups = groups_a_processor<Body>(group_lanes);
  std::uint32_t bytes = groups == 0 ? 0 : scratch_left_of<Body>(device_attribute(kProcessorScratch) / groups);
  bytes = bytes < kLeastLent ? kLeastLent : bytes;
  bytes = bytes < most ? bytes : most;
  (void)allow_scratch<Body>(bytes);  // where it is refused, the launch says so
  return bytes;
}

/// What launch_on_device() has to give a group of Body so that processors full of them have a place for a
/// group of Guest, too. 0 where the launch is too small to fill the device, and as many as `sharers` like it.
/// False: they have none in any case.
///
/// A processor that holds k groups of Body, and G of Guest, alone, has room for k (1 - 1 / G) and one: of no
/// resource does a group of either take more than its k-th, or G-th, part. Scratchpad keeps more out.
/// There may be kernels like Guest that take up to `more` scratchpad, and other registers: G is what
/// run_lanes promises for all of them.
template <class Body, class Guest>
bool try_leave_room(const LaunchShape& shape, std::uint32_t more, std::uint32_t sharers,
                    std::uint32_t& scratch_bytes) {
  static_assert(kMostGroupLanes<Guest> < 1024);
  constexpr std::uint32_t kGuests = kGroupsHeld;
  scratch_bytes = 0;
  const std::uint32_t guest = in_scratch_units(declared_scratch<Guest>() + more + kScratchAside);
  const std::uint32_t all = device_attribute(kProcessorScratch);
  if (all < 2 * guest) return false;
  const std::uint32_t fit = groups_a_processor<Body>(shape.group_lanes) * (kGuests - 1) / kGuests;
  std::uint32_t groups = fit < all / guest - 1 ? fit : all / guest - 1;
  const std::uint64_t processors = device_attribute(kProcessors);
  const std::uint64_t launched = shape.groups() * sharers;
  if (groups == 0) return launched <= processors - processors / 8;
  if (launched <= groups * processors) return true;
  const std::uint32_t declared = declared_scratch<Body>() + kScratchAside;
  const auto give = [&] { scratch_bytes = scratch_left_of<Body>((all - guest) / groups); };
  // In whole KiB it may be so little that one more finds room, if the device gives it no more than it asks
  // for.
  for (give(); groups > 1 && (groups + 1) * (declared + scratch_bytes) <= all; give()) --groups;
  return scratch_bytes == 0 || allow_scratch<Body>(scratch_bytes);  // 0: what it declares keeps more out
}

}  // namespace esker::gpu
