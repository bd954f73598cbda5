// The lanes of a group as fibers of one OS thread.
#pragma once

#include <cstdint>
#include <deque>
#include <esker/device/cpu/fiber.hpp>
#include <esker/device/cpu/rendezvous.hpp>
#include <exception>
#include <memory>
#include <vector>

namespace esker::cpu {

/// Contract. run() returns when every lane has ended, or throws the first exception of one. After an
/// exception lanes that have not begun never do, and lanes that wait for others are unwound.
///
/// Protocol. A worker fiber takes lanes one after the other; only a lane that has to wait keeps its
/// worker, and the next lane gets another. So a kernel that never waits costs one fiber a group, and
/// the workers and their stacks are kept for the next group.
///
/// Progress. Lanes that a collective has set free run first, then lanes that have not begun, then those that
/// await or yield. When only yielding lanes are left, the OS thread backs off. When no lane can go
/// on and none waits for the outside, it is the kernel's mistake: std::logic_error says which lane waits
/// where.
class FiberGroup final : public GroupEngine {
 public:
  using LaneFunction = void (*)(void* body, GroupLane& lane);
  void run(const LaunchShape& shape, std::uint64_t group, LaneFunction function, void* body);

  Exchange exchange(std::uint32_t lane, std::uint32_t view, const Collective& what,
                    const Exchange& mine) override;
  void await(std::uint32_t lane, const char* where, bool (*ready)(void*), void* context) override;
  void yield(std::uint32_t lane) override;
  std::byte* scratch(const void* key, std::size_t bytes) override { return rendezvous_.scratch(key, bytes); }

 private:
  struct Worker {
    explicit Worker(FiberGroup& owner) : group{owner}, fiber{work, this} {}
    static void work(void* self);
    FiberGroup& group;
    Fiber fiber;
  };
  struct LaneState {
    Worker* worker = nullptr;
    bool (*ready)(void*) = nullptr;  // null in waiting_: it yields
    void* context = nullptr;
  };

  bool may_begin() const { return next_lane_ < rendezvous_.lanes() && !cancelled_; }
  void run_lane(std::uint32_t lane);
  void release_others(std::uint32_t lane);
  void wait(std::uint32_t lane) { lanes_[lane].worker->fiber.suspend(); }
  void poll();
  void back_off();
  void fail(std::exception_ptr error);

  LaunchShape shape_;
  std::uint64_t group_ = 0;
  LaneFunction function_ = nullptr;
  void* body_ = nullptr;

  Rendezvous rendezvous_;
  std::vector<LaneState> lanes_;
  std::deque<std::uint32_t> ready_;
  std::vector<std::uint32_t> waiting_;  // await or yield
  std::uint32_t next_lane_ = 0;         // the first that has not begun
  std::uint32_t running_ = 0;           // begun and not ended
  std::uint32_t idle_polls_ = 0;        // in a row, with nothing but yields in between
  bool cancelled_ = false;
  std::exception_ptr error_;

  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Worker*> idle_;
};

}  // namespace esker::cpu
