// A lane that can send messages and work together with its group.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <esker/device/group.hpp>
#include <esker/device/group_packer.hpp>
#include <esker/runtime/device_context.hpp>
#include <esker/runtime/package_sink.hpp>

namespace esker {

ESKER_PASS_BEGIN

class WorkItem;

/// What a kernel takes that uses group operations: wave(), group(), scratch(), elections.
///
/// Contract. One a lane, valid during the kernel. Whoever launches calls finish() as the lane ends.
#if defined(ESKER_ON_GPU)
/// With a pool of so many words for open packages (net/gpu/outbox.hpp).
template <std::uint32_t PoolWords>
class BasicGroupItem {
 public:
  ESKER_HD BasicGroupItem(GroupLane& lane, const detail::KernelContext& context,
                          std::uint32_t pool_words = PoolWords)
      : lane_{&lane}, sink_{gpu::copy_pe_state(lane, context.pe_state)}, outbox_{gpu::hash_seed_of(lane)} {
    Outbox::begin(lane, *pe_state(), pool_words);
  }
  BasicGroupItem(const BasicGroupItem&) = delete;
  BasicGroupItem& operator=(const BasicGroupItem&) = delete;

  ESKER_HD std::uint32_t pe() const { return pe_state()->pe; }
  ESKER_HD std::uint32_t n_pes() const { return pe_state()->n_pes; }

  ESKER_HD std::uint64_t global_id() const { return lane_->global_id(); }
  ESKER_HD std::uint64_t group_id() const { return lane_->group_id(); }
  ESKER_HD std::uint64_t lanes() const { return lane_->lanes(); }
  ESKER_HD std::uint32_t lane() const { return lane_->lane(); }
  ESKER_HD std::uint32_t group_lanes() const { return lane_->group_lanes(); }
  ESKER_HD GroupLane& group_lane() { return *lane_; }
  ESKER_HD auto wave() { return lane_->wave(); }
  ESKER_HD auto group() { return lane_->group(); }

  // For whoever runs the lane.
  ESKER_HD void finish() { outbox_.close(); }

 private:
  friend class WorkItem;
  friend struct detail::SenderAccess;
  ESKER_HD const HeapView& heap() const { return pe_state()->heap; }
  ESKER_HD Caller caller() const { return {false, lane(), group_id()}; }
  ESKER_HD static const gpu::PeState* pe_state() { return &gpu::pe_state_here(); }
  template <std::uint32_t Words>
  ESKER_HD void post(Command command, const std::uint64_t (&words)[Words]) {
    post_words(command, std::integral_constant<std::uint32_t, Words>{}, words);
  }
  template <class Width>
  ESKER_HD void post_words(Command command, Width width, const std::uint64_t* words) {
    // Lanes that have just sent a package send on some of what handlers have sent meanwhile.
    if (outbox_.append(command, width, words)) [[unlikely]]
      gpu::send_on<Outbox>(gpu::hash_seed_of(*lane_), gpu::handler_shard_here(), GroupLane::coalesced());
  }
  template <std::uint32_t Words, class Election>
  ESKER_HD void post(Command command, const std::uint64_t (&words)[Words], Election&& election) {
    std::forward<Election>(election).send(*lane_, sink_, command.word(), words);
  }

  using Outbox = gpu::GroupOutbox<PoolWords>;

  GroupLane* lane_;
  gpu::DeviceSink sink_;
  Outbox outbox_;
};

class GroupItem : public BasicGroupItem<gpu::kSmallPool> {
 public:
  using BasicGroupItem::BasicGroupItem;
};
#else
class GroupItem {
 public:
  GroupItem(GroupLane& lane, const detail::KernelContext& context)
      : lane_{&lane}, context_{&context}, sink_{context, &lane}, packer_{lane, sink_} {}
  ~GroupItem() { sink_.end(); }
  GroupItem(const GroupItem&) = delete;
  GroupItem& operator=(const GroupItem&) = delete;

  std::uint32_t pe() const { return context_->pe; }
  std::uint32_t n_pes() const { return context_->n_pes; }

  std::uint64_t global_id() const { return lane_->global_id(); }
  std::uint64_t group_id() const { return lane_->group_id(); }
  std::uint64_t lanes() const { return lane_->lanes(); }
  std::uint32_t lane() const { return lane_->lane(); }
  std::uint32_t group_lanes() const { return lane_->group_lanes(); }
  /// Views for collectives (LaneGroup), scratchpad and fine-grain barriers.
  GroupLane& group_lane() { return *lane_; }
  auto wave() { return lane_->wave(); }
  auto group() { return lane_->group(); }

  // For whoever runs the lane.
  void finish() { packer_.close(); }

 private:
  friend struct detail::SenderAccess;
  const HeapView& heap() const { return context_->heap; }
  Caller caller() const { return {false, lane(), group_id()}; }
  ProducerServices& services() const { return *context_->services; }
  PackageSink& sink() { return sink_; }
  template <std::uint32_t Words>
  void post(Command command, const std::uint64_t (&words)[Words]) {
    packer_.append(command.word(), words);
  }
  template <std::uint32_t Words, class Election>
  void post(Command command, const std::uint64_t (&words)[Words], Election&& election) {
    std::forward<Election>(election).send(*lane_, sink_, command.word(), words);
  }

  GroupLane* lane_;
  const detail::KernelContext* context_;
  PackageSink sink_;
  GroupPacker<PackageSink> packer_;
};
static_assert(Packer<GroupPacker<PackageSink>, std::uint32_t, const std::uint64_t (&)[1]>);
#endif

ESKER_PASS_END

}  // namespace esker
