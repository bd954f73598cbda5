// A lane of a kernel that can send messages.
#pragma once

#include <cstdint>
#include <utility>

#include <esker/device/lane.hpp>
#include <esker/runtime/device_context.hpp>
#include <esker/runtime/group_item.hpp>
#include <esker/runtime/outbox.hpp>

namespace esker {

ESKER_PASS_BEGIN

/// What a kernel takes that needs no group operation; on the CPU its lanes run as a plain loop.
///
/// Contract. Valid during the kernel. Cheap to copy.
#if defined(ESKER_ON_GPU)
class WorkItem : public Lane {
 public:
  using Item = BasicGroupItem<gpu::kLentPool>;
  /// A lane of the user's launch, run by `item`, a lane of the device's.
  ESKER_HD WorkItem(const Lane& lane, Item& item) : Lane{lane}, item_{&item} {}

  ESKER_HD std::uint32_t pe() const { return item_->pe(); }
  ESKER_HD std::uint32_t n_pes() const { return item_->n_pes(); }

 private:
  friend struct detail::SenderAccess;
  ESKER_HD const HeapView& heap() const { return item_->heap(); }
  ESKER_HD Caller caller() const { return {false, lane(), group_id()}; }
  ESKER_HD const gpu::PeState* pe_state() const { return item_->pe_state(); }
  template <std::uint32_t Words, class... Election>
  ESKER_HD void post(Command command, const std::uint64_t (&words)[Words], Election&&... election) const {
    item_->post(command, words, std::forward<Election>(election)...);
  }
  ESKER_HD void post_words(Command command, std::uint32_t width, const std::uint64_t* words) const {
    item_->post_words(command, width, words);
  }

  Item* item_;
};
#else
class WorkItem : public Lane {
 public:
  WorkItem(const Lane& lane, const detail::KernelContext& context, Outbox::Filling& outbox)
      : Lane{lane}, context_{&context}, outbox_{&outbox} {}

  /// This PE, and how many there are: destinations are 0 .. n_pes() - 1.
  std::uint32_t pe() const { return context_->pe; }
  std::uint32_t n_pes() const { return context_->n_pes; }

 private:
  friend struct detail::SenderAccess;
  const HeapView& heap() const { return context_->heap; }
  Caller caller() const { return {false, lane(), group_id()}; }
  PackageSink sink() const { return PackageSink(*context_); }
  template <std::uint32_t Words>
  void post(Command command, const std::uint64_t (&words)[Words]) const {
    outbox_->append(command.word(), words);
  }
  /// With an election that needs no group: PerLane.
  template <std::uint32_t Words, class Election>
  void post(Command command, const std::uint64_t (&words)[Words], Election&& election) const {
    PackageSink into = sink();
    const Lane& lane = *this;
    std::forward<Election>(election).send(lane, into, command.word(), words);
  }

  const detail::KernelContext* context_;
  Outbox::Filling* outbox_;
};
#endif

ESKER_PASS_END

}  // namespace esker
