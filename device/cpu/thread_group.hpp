// The lanes of a group as one OS thread each: slow, and every race is a real one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <esker/device/cpu/rendezvous.hpp>
#include <exception>
#include <mutex>
#include <optional>
#include <vector>

namespace esker::cpu {

/// Contract. As FiberGroup: the first exception is thrown by run(), lanes that wait are unwound, and
/// lanes that can never go on are reported.
///
/// Ordering. exchange() takes a mutex, so it orders more than LaneGroup promises; await() polls its
/// predicate without one for a while, so that a missing release or acquire in what the predicate
/// reads shows as a race.
class ThreadGroup final : public GroupEngine {
 public:
  using LaneFunction = void (*)(void* body, GroupLane& lane);
  void run(const LaunchShape& shape, std::uint64_t group, LaneFunction function, void* body);

  Exchange exchange(std::uint32_t lane, std::uint32_t view, const Collective& what,
                    const Exchange& mine) override;
  void await(std::uint32_t lane, const char* where, bool (*ready)(void*), void* context) override;
  void yield(std::uint32_t lane) override;
  std::byte* scratch(const void* key, std::size_t bytes) override;

 private:
  struct LaneState {
    std::condition_variable wake;
    bool released = false;
    bool awaits = false;
    std::uint64_t polled_at = 0;  // changes_ when it last polled in vain, with all blocked
  };

  void run_lane(std::uint32_t lane);
  bool all_blocked() const { return blocked_ == rendezvous_.live(); }
  void release();
  void report_if_stuck();
  void fail(std::exception_ptr error);

  LaunchShape shape_;
  std::uint64_t group_ = 0;
  LaneFunction function_ = nullptr;
  void* body_ = nullptr;

  std::mutex mutex_;  // of all below
  Rendezvous rendezvous_;
  std::vector<LaneState> lanes_;
  std::uint32_t blocked_ = 0;  // lanes in a collective or awaiting
  std::uint64_t changes_ = 1;  // of which lanes are blocked
  bool cancelled_ = false;
  std::exception_ptr error_;
  std::optional<std::uint32_t> throwing_;  // the lane that threw it, if one did
};

}  // namespace esker::cpu
