// The sink of lanes on a GPU: auto-grouped packages are binned and delivered, others go to the host's queue.
#pragma once

#include <cstdint>
#include <esker/net/gpu/deliver.hpp>
#include <esker/net/gpu/handler_queue.hpp>

#if defined(ESKER_ON_GPU)

namespace esker::gpu {

using ItemAutoGroup = BasicAutoGroup<kStageWords, BinScratch>;

/// The group's copy of what lanes share. Collective over the group, once.
ESKER_HD inline const DeviceShare& copy_of(GroupLane& lane, const DeviceShare* share) {
  struct Copy {
    std::uint64_t words[sizeof(DeviceShare) / 8];
  };
  Copy& copy = lane.scratch<Copy>();
  const auto* const from = reinterpret_cast<const std::uint64_t*>(share);
  for (std::uint32_t i = lane.lane(); i < sizeof(DeviceShare) / 8; i += lane.group_lanes()) copy.words[i] = from[i];
  lane.group().sync();
  return reinterpret_cast<const DeviceShare&>(copy);
}

class DeviceSink {
 public:
  ESKER_HD explicit DeviceSink(const DeviceShare& share) : share_{&share} {}

  ESKER_HD std::uint32_t columns(std::uint32_t words) const { return share_->host_queue.columns(words); }
  ESKER_HD std::uint64_t reserve(std::uint32_t packages) { return queue().reserve(packages); }
  ESKER_HD bool was_empty(std::uint64_t ticket) const { return share_->host_queue.was_empty(ticket); }
  ESKER_HD std::uint64_t* row(std::uint64_t ticket, std::uint32_t words, std::uint32_t r) const {
    return share_->host_queue.row(ticket, words, r);
  }
  ESKER_HD void publish(std::uint64_t ticket, std::uint32_t command, std::uint32_t words,
                        std::uint32_t count) {
    queue().publish(ticket, command, words, count);
  }
  template <class AnyLane>
  ESKER_HD void pause(AnyLane& lane) {
    if constexpr (requires { lane.coalesced(); }) {
      auto crew = lane.coalesced();
      wait_step(*share_, lane, crew, crew.position_among(true), looks_);
    } else {
      lane.yield();
    }
  }
  template <class Crew>
  ESKER_HD void deliver(GroupLane& lane, Crew& crew, const Position& mine, const StagedPackage& package,
                        BinScratch& scratch) {
    gpu::deliver(*share_, lane, crew, mine, package, scratch);
    has_delivered_ = true;
  }
  /// Whether this lane has delivered since the last call: then it may send on what handlers have sent.
  ESKER_HD bool take_delivered() {
    const bool delivered = has_delivered_;
    has_delivered_ = false;
    return delivered;
  }

 private:
  // A view: its methods change shared memory, not the view.
  ESKER_HD PackageQueue& queue() const { return const_cast<PackageQueue&>(share_->host_queue); }

  const DeviceShare* share_;
  std::uint32_t looks_ = 0;
  bool has_delivered_ = false;
};

}  // namespace esker::gpu

#endif
