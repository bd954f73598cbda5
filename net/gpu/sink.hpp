// The sink of lanes on a GPU that name an election: their packages go to the host's queue.
#pragma once

#include <cstdint>
#include <esker/device/packing.hpp>
#include <esker/net/gpu/handler_queue.hpp>
#include <esker/net/gpu/outbox.hpp>

#if defined(ESKER_ON_GPU)

namespace esker::gpu {

class DeviceSink {
 public:
  ESKER_HD explicit DeviceSink(const PeState& pe_state) : pe_state_{&pe_state} {}

  ESKER_HD std::uint32_t columns(std::uint32_t words) const { return pe_state_->host_queue.columns(words); }
  ESKER_HD std::uint64_t reserve(std::uint32_t packages) { return queue().reserve(packages); }
  /// With the host gone all are: nobody reads what is written over.
  ESKER_HD bool was_empty(std::uint64_t ticket) const {
    return is_abandoned_ || pe_state_->host_queue.was_empty(ticket);
  }
  ESKER_HD std::uint64_t* row(std::uint64_t ticket, std::uint32_t words, std::uint32_t r) const {
    return pe_state_->host_queue.row(ticket, words, r);
  }
  ESKER_HD void publish(std::uint64_t ticket, std::uint32_t command, std::uint32_t words,
                        std::uint32_t count) {
    note_call(*pe_state_, command);
    queue().publish(ticket, command, words, count);
  }
  /// Applies some of what has arrived: what this lane waits for may wait for it.
  template <class AnyLane>
  ESKER_HD void pause(AnyLane& lane) {
    if (++polls_ % kPollsUntilStarving == 0) is_abandoned_ = pe_state_->words->abandoned.load_relaxed() != 0;
    if constexpr (requires { lane.coalesced(); }) {
      const auto active = lane.coalesced();
      const std::uint32_t all = places(*pe_state_);
      const std::uint32_t seed = active.of_leader(hash_seed_of(lane) + polls_);
      if (all > 0 &&
          apply_some(*pe_state_, NoHandler{}, active, seed, seed * active.size() % all, active.size(), 1)
                  .messages > 0)
        return;
    }
    lane.yield();
  }

 private:
  // A view: its methods change shared memory, not the view.
  ESKER_HD PackageQueue& queue() const { return const_cast<PackageQueue&>(pe_state_->host_queue); }

  const PeState* pe_state_;
  std::uint32_t polls_ = 0;
  bool is_abandoned_ = false;
};
static_assert(Sink<DeviceSink>);

}  // namespace esker::gpu

#endif
