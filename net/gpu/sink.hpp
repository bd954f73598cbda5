// The sink of lanes on a GPU that name an election: their packages go to the host's queue.
#pragma once

#include <cstdint>
#include <esker/net/gpu/handler_queue.hpp>
#include <esker/net/gpu/outbox.hpp>

#if defined(ESKER_ON_GPU)

namespace esker::gpu {

class DeviceSink {
 public:
  ESKER_HD explicit DeviceSink(const DeviceShare& share) : share_{&share} {}

  ESKER_HD std::uint32_t columns(std::uint32_t words) const { return share_->host_queue.columns(words); }
  ESKER_HD std::uint64_t reserve(std::uint32_t packages) { return queue().reserve(packages); }
  /// With the host gone all are: nobody reads what is written over.
  ESKER_HD bool was_empty(std::uint64_t ticket) const {
    return is_abandoned_ || share_->host_queue.was_empty(ticket);
  }
  ESKER_HD std::uint64_t* row(std::uint64_t ticket, std::uint32_t words, std::uint32_t r) const {
    return share_->host_queue.row(ticket, words, r);
  }
  ESKER_HD void publish(std::uint64_t ticket, std::uint32_t command, std::uint32_t words,
                        std::uint32_t count) {
    note_call(*share_, command);
    queue().publish(ticket, command, words, count);
  }
  /// Applies some of what has arrived: what this lane waits for may wait for it.
  template <class AnyLane>
  ESKER_HD void pause(AnyLane& lane) {
    if (++looks_ % kLooksUntilStarving == 0) is_abandoned_ = share_->abandoned->load_relaxed() != 0;
    if constexpr (requires { lane.coalesced(); }) {
      const auto crew = lane.coalesced();
      const std::uint32_t all = places(*share_);
      const std::uint32_t salt = crew.of_leader(salt_of(lane) + looks_);
      if (all > 0 &&
          apply_some(*share_, NoHandler{}, crew, salt, salt * crew.size() % all, crew.size(), 1).messages > 0)
        return;
    }
    lane.yield();
  }

 private:
  // A view: its methods change shared memory, not the view.
  ESKER_HD PackageQueue& queue() const { return const_cast<PackageQueue&>(share_->host_queue); }

  const DeviceShare* share_;
  std::uint32_t looks_ = 0;
  bool is_abandoned_ = false;
};

}  // namespace esker::gpu

#endif
