// A lane that can send messages and work together with its group.
#pragma once

#include <cstdint>
#include <utility>

#include <esker/device/election/auto_group.hpp>
#include <esker/device/group.hpp>
#include <esker/runtime/device_context.hpp>

namespace esker {

namespace detail {
#if defined(ESKER_ON_GPU)
using ItemAutoGroup = gpu::ItemAutoGroup;
using ItemSink = gpu::DeviceSink;
ESKER_HD inline ItemSink make_sink(const DeviceContext& context, GroupLane& lane) {
  return ItemSink(gpu::copy_of(lane, context.device_share));
}
#else
using ItemAutoGroup = AutoGroup;
using ItemSink = PackageSink;
inline ItemSink make_sink(const DeviceContext& context, GroupLane& lane) {
  return ItemSink(context, &lane);
}
#endif
}  // namespace detail

/// What a kernel takes that uses group operations: wave(), group(), scratch(), elections.
///
/// Contract. One a lane, valid during the kernel. Whoever launches calls finish() as the lane ends.
class GroupItem {
 public:
  ESKER_HD GroupItem(GroupLane& lane, const DeviceContext& context)
      : lane_{&lane}, context_{&context}, sink_{detail::make_sink(context, lane)}, auto_group_{lane} {}
  GroupItem(const GroupItem&) = delete;
  GroupItem& operator=(const GroupItem&) = delete;

  ESKER_HD std::uint32_t pe() const { return context_->pe; }
  ESKER_HD std::uint32_t n_pes() const { return context_->n_pes; }

  ESKER_HD std::uint64_t global_id() const { return lane_->global_id(); }
  ESKER_HD std::uint64_t group_id() const { return lane_->group_id(); }
  ESKER_HD std::uint64_t lanes() const { return lane_->lanes(); }
  ESKER_HD std::uint32_t lane() const { return lane_->lane(); }
  ESKER_HD std::uint32_t group_lanes() const { return lane_->group_lanes(); }
  /// Views for collectives (LaneGroup), scratchpad and fine-grain barriers.
  ESKER_HD GroupLane& group_lane() { return *lane_; }
  ESKER_HD auto wave() { return lane_->wave(); }
  ESKER_HD auto group() { return lane_->group(); }

  // For shmem.hpp and WorkItem.
  ESKER_HD const HeapView& heap() const { return context_->heap; }
  ESKER_HD Caller caller() const { return {false, lane(), group_id()}; }
  ESKER_HD const gpu::DeviceShare* share() const { return context_->device_share; }
  template <std::uint32_t Words>
  ESKER_HD void post(Command command, const std::uint64_t (&words)[Words]) {
    auto_group_.send(*lane_, sink_, command.word(), words);
    send_on_for_handlers();
  }
  template <std::uint32_t Words, class Election>
  ESKER_HD void post(Command command, const std::uint64_t (&words)[Words], Election&& election) {
    std::forward<Election>(election).send(*lane_, sink_, command.word(), words);
  }
  ESKER_HD void finish() { auto_group_.finish(*lane_, sink_); }
  ESKER_HD const DeviceContext& context() const { return *context_; }

 private:
  /// On a GPU: a crew that has delivered a package sends on some of what handlers have sent meanwhile.
  ESKER_HD void send_on_for_handlers() {
#if defined(ESKER_ON_GPU)
    if (!sink_.take_delivered()) return;
    gpu::send_on(*context_->device_share, *lane_,
                 [this](std::uint32_t command, std::uint32_t width, const std::uint64_t* words) {
                   auto_group_.send(*lane_, sink_, command, width, words);
                 });
#endif
  }

  GroupLane* lane_;
  const DeviceContext* context_;
  detail::ItemSink sink_;
  detail::ItemAutoGroup auto_group_;
};

}  // namespace esker
