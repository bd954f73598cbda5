// How a lane of a kernel of the user's own, launched by the user, comes to send.
#pragma once

#include <cstdint>

#include <esker/device/error.hpp>
#include <esker/device/launch.hpp>
#include <esker/runtime/group_item.hpp>

#if defined(ESKER_DEVICE_COMPILER)

namespace esker {

namespace detail {
ESKER_PASS_BEGIN
#if defined(ESKER_ON_GPU)
class KernelLane {
 protected:
  ESKER_HD GroupLane& own_lane() { return lane_; }

 private:
  GroupLane lane_{gpu::own_shape(), gpu::own_group(), gpu::own_lane(), gpu::own_shape().group_lanes};
};
#else
/// Nothing runs such a kernel on the host.
class KernelLane {
 protected:
  GroupLane& own_lane() { misuse("KernelItem: a kernel of one's own runs on a GPU only"); }
};
#endif
ESKER_PASS_END
}  // namespace detail

ESKER_PASS_BEGIN

/// A GroupItem that finds its own place, for a kernel that takes a DeviceContext by value:
///
///   kernel(esker::DeviceContext context, ...) {
///     esker::KernelItem item(context);
///     shmem_inc(item, target, pe);
///   }
///   ...
///   rt.reserve_for(kernel, kGroupLanes);  // once, before the first launch
///
/// Contract. Construction is collective over the group: every lane, before any diverges or returns; once a
///           kernel. Groups and lanes in one dimension, at most 1024 lanes a group. When it is destroyed the
///           lane sends no more. Launch on Runtime::stream(), or wait for the kernel before quiet() and
///           barrier_all(), which wait for that stream alone.
class KernelItem : private detail::KernelLane, public GroupItem {
 public:
  ESKER_HD explicit KernelItem(const DeviceContext& context) : GroupItem(own_lane(), context) {
#if defined(ESKER_ON_GPU)
    if (!context.is_reserved) [[unlikely]] {
      gpu::tell(*pe_state(), {gpu::Fault::kNotReserved, pe(), lane(), 0, group_id(), 0, 0, "KernelItem"});
    }
#endif
  }
  ESKER_HD ~KernelItem() { finish(); }
};

ESKER_PASS_END

}  // namespace esker

#endif
