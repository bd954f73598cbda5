// Notices that nothing moves, and describes which stage waits for what.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace esker {

/// Counters of one PE at one moment, stage by stage; racy.
struct StageSnapshot {
  struct Peer {
    std::uint64_t messages_sent, buffers_sent, messages_received, buffers_received, buffers_applied;
  };
  std::uint32_t pe = 0;
  std::string name;            // for messages, where it is not "PE" and its number
  std::string user_thread;     // the call it waits in and for how long, or that it is outside
  std::string network_thread;  // what the call waits for there
  std::string handler;         // running, if any
  std::uint64_t published = 0;
  std::uint64_t sent_by_handlers = 0;
  std::uint64_t aggregated = 0;
  std::uint64_t routed = 0;
  std::uint64_t applied = 0;
  std::uint64_t slots = 0;
  std::uint64_t slots_occupied = 0;
  std::uint32_t open_buffers = 0;
  bool aggregator_blocked = false;
  bool network_stuck = false;  // inside one step
  std::string device;          // what its GPU does, if it has one
  std::vector<Peer> peers;
};

/// Which stage of this PE holds messages back, in words; empty if none does by its own counters.
std::string find_stuck_stage(const StageSnapshot& snapshot);

/// For how long nothing has moved.
///
/// Contract. still() from any thread, several times a second. A gap of kAway between two calls, or of half
///           the limit if that is less, means that the process was stopped, or its program ran outside Esker:
///           the time before does not count.
class HangWatch {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kAway{2000};

  /// `limit`: what still() is held against; 0: by other PEs alone.
  explicit HangWatch(std::chrono::milliseconds limit)
      : away_{limit.count() == 0 ? kAway : std::min(kAway, limit / 2)} {}

  /// `activity` changes whenever something moves.
  std::chrono::milliseconds still(std::uint64_t activity, Clock::time_point now);

 private:
  const std::chrono::milliseconds away_;
  std::mutex mutex_;
  std::optional<std::uint64_t> last_activity_;  // guarded by mutex_; the clock starts with the first
  Clock::time_point moved_at_;                  // guarded by mutex_
  Clock::time_point polled_at_;                 // guarded by mutex_
};

/// Writes the report to stderr, and as JSON to `file_prefix`.PE.json.
void write_hang_report(const StageSnapshot& snapshot, const std::string& headline,
                       const std::string& file_prefix);

}  // namespace esker
