// How a lane of a kernel of the user's own, launched by the user, comes to send.
#pragma once

#include <cstdint>

#include <esker/device/error.hpp>
#include <esker/device/launch.hpp>
#include <esker/runtime/group_item.hpp>

namespace esker {

namespace detail {
struct ContextAccess;
}

/// What a kernel of the user's own needs to send: Runtime::device_context().
///
/// Contract. Trivially copyable; a kernel takes it by value. Valid while its Runtime lives.
class DeviceContext {
 public:
  explicit DeviceContext(const detail::KernelContext& context) : context_{context} {}

 private:
  friend struct detail::ContextAccess;
  detail::KernelContext context_;
};

namespace detail {
/// What the library and its tests see of it.
struct ContextAccess {
  ESKER_HD static const KernelContext& of(const DeviceContext& context) { return context.context_; }
};
}  // namespace detail

}  // namespace esker

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
  ESKER_HD explicit KernelItem(const DeviceContext& context)
      : GroupItem(own_lane(), detail::ContextAccess::of(context)) {
#if defined(ESKER_ON_GPU)
    if (!detail::ContextAccess::of(context).is_reserved) [[unlikely]]
      report_unreserved();
#endif
  }
  ESKER_HD ~KernelItem() { finish(); }

#if defined(ESKER_ON_GPU)
 private:
  ESKER_NOINLINE ESKER_HD void report_unreserved() const {
    const gpu::PeState& state = gpu::pe_state_here();
    gpu::report_fault(state,
                      {gpu::Fault::kNotReserved, state.pe, lane(), 0, group_id(), 0, 0, "KernelItem", 1});
  }
#endif
};

ESKER_PASS_END

}  // namespace esker

#endif
