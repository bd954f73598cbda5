// The one wait of host threads: lanes that need space, and the user's thread in its calls.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>

#include <esker/aggregator/aggregator.hpp>
#include <esker/aggregator/trace.hpp>
#include <esker/device/error.hpp>
#include <esker/net/failure.hpp>
#include <esker/net/network.hpp>
#include <esker/queue/waiting.hpp>
#include <esker/runtime/network_owner.hpp>

namespace esker {

/// A thread that waits lends itself to aggregation and, where it makes the network's steps, to progress; then
/// it naps: where peers ring, if it makes the steps, else where this PE's other threads do.
///
/// Contract. Any thread of this PE. The constructing thread is the user's.
/// Ordering. [blocked] A lane counts itself as waiting before it looks once more, and the network's owner
///           looks at the count after it has made room: both by read-modify-writes, so one sees the other.
/// Errors.   What the runtime has failed with, from wait(); or that peers have not come, after give_up_at().
class WaitLoop {
 public:
  using Clock = std::chrono::steady_clock;

  /// `while_napping` is called between naps.
  WaitLoop(const Failure& failure, Doorbell& bell, Aggregators& aggregators, Network& network,
           NetworkOwner& owner, std::atomic<std::uint32_t>& waiting_lanes, Tracer* tracer,
           std::function<void()> while_napping)
      : failure_{failure},
        bell_{bell},
        aggregators_{aggregators},
        network_{network},
        owner_{owner},
        waiting_lanes_{waiting_lanes},
        tracer_{tracer},
        while_napping_{std::move(while_napping)} {}

  struct Nothing {
    void operator()() const {}
  };
  /// Until `ready()`. `what` is for reports, a literal or a call's name; `from_lane`: reports count it as a
  /// lane that is blocked. `meanwhile` is called again and again.
  template <class Ready, class Meanwhile = Nothing>
  void wait(const char* what, Ready ready, bool from_lane, Meanwhile meanwhile = {}) {
    const TraceSpan span(tracer_, TraceWhat::kWait, what);
    Backoff backoff{kLongestNap, network_.yields()};
    BlockedLane blocked{waiting_lanes_};
    const Driver driver{!from_lane && drives() ? &owner_ : nullptr};
    const bool steps = driver.drives() || (!owner_.has_own_thread() && is_user_thread());
    while (!ready()) {
      failure_.raise_if_set();
      meanwhile();
      if (help() || (driver.drives() && owner_.try_step_for_owner())) {
        backoff.reset();
        continue;
      }
      if (!driver.drives() && network_.has_news())
        network_.bell().ring();  // what is waited for may hang on it
      if (from_lane) blocked.mark();
      if (backoff.napping()) {
        while_napping_();
        if (give_up_at_ && Clock::now() > *give_up_at_) {
          throw Error(Error::Kind::kNetwork, fmt::format("{}: the other PEs have not come", what));
        }
      }
      bool moved = false;
      const auto look = [&] {
        moved = steps && owner_.step_once_more();
        return moved || ready() || failure_.is_set();
      };
      backoff.wait(steps ? network_.bell().steps : bell_, look);
      if (moved) backoff.reset();
    }
  }

  enum class Round { kIdle, kMoved, kDone };
  /// Calls `round()` again and again until it is done. Between idle ones it naps for so long at most, or
  /// until a letter comes.
  template <class Function>
  void attend(const char* what, std::chrono::microseconds nap, Function round) {
    const TraceSpan span(tracer_, TraceWhat::kWait, what);
    Backoff backoff{nap, network_.yields()};
    while (true) {
      failure_.raise_if_set();
      const Round now = round();
      if (now == Round::kDone) return;
      if (help() || now == Round::kMoved) {
        backoff.reset();
        continue;
      }
      if (network_.has_news()) network_.bell().ring();
      backoff.wait(bell_, [&] { return network_.mail().has_arrived() || failure_.is_set(); });
    }
  }

  /// The same for a caller that looks again and again; throws what the runtime has failed with.
  bool help_or_raise() {
    failure_.raise_if_set();
    return help();
  }
  /// One step on the calling thread. True if something moved.
  bool help() {
    bool moved = aggregators_.help();
    if (is_user_thread()) moved |= owner_.step_if_caller();
    return moved;
  }

  /// The user's thread, in its waits, makes the network's steps.
  bool drives() const { return owner_.is_lent() && is_user_thread(); }
  /// The user's thread: no wait is longer than until then.
  void give_up_at(Clock::time_point time) { give_up_at_ = time; }
  /// Any thread, racy: lane threads that are blocked.
  std::uint32_t lanes_waiting() const { return waiting_lanes_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::chrono::microseconds kLongestNap{1000};

  bool is_user_thread() const { return std::this_thread::get_id() == user_thread_; }

  /// A lane counts as blocked once a round has moved nothing, until its wait ends.
  class BlockedLane {
   public:
    explicit BlockedLane(std::atomic<std::uint32_t>& count) : count_{count} {}
    ~BlockedLane() {
      if (marked_) count_.fetch_sub(1, std::memory_order_relaxed);
    }
    BlockedLane(const BlockedLane&) = delete;
    BlockedLane& operator=(const BlockedLane&) = delete;
    void mark() {
      if (!marked_) count_.fetch_add(1, std::memory_order_acq_rel);  // [blocked]
      marked_ = true;
    }

   private:
    std::atomic<std::uint32_t>& count_;
    bool marked_ = false;
  };

  /// The user's thread, in a wait.
  class Driver {
   public:
    explicit Driver(NetworkOwner* owner) : owner_{owner} {
      if (owner_ != nullptr) owner_->set_driven(true);
    }
    ~Driver() {
      if (owner_ != nullptr) owner_->set_driven(false);
    }
    Driver(const Driver&) = delete;
    Driver& operator=(const Driver&) = delete;
    bool drives() const { return owner_ != nullptr; }

   private:
    NetworkOwner* const owner_;
  };

  const Failure& failure_;
  Doorbell& bell_;
  Aggregators& aggregators_;
  Network& network_;
  NetworkOwner& owner_;
  std::atomic<std::uint32_t>& waiting_lanes_;
  Tracer* const tracer_;
  const std::function<void()> while_napping_;
  const std::thread::id user_thread_ = std::this_thread::get_id();
  std::optional<Clock::time_point> give_up_at_;
};

}  // namespace esker
