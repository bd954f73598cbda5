// When progress kernels run, which handler each serves, and what they report.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include <esker/net/gpu/engine/handler_registry.hpp>
#include <esker/net/gpu/engine/progress_starter.hpp>
#include <esker/net/gpu/host_words.hpp>

namespace esker::gpu {

/// State    No progress kernel is under way, or one is: started() - ended() is 0 or 1.
/// Contract The network's owner, but for starter(), whose contract says who calls it.
/// Ordering [progress], see HostWords
/// Progress No call waits for the device.
/// Errors   What the starter has failed with, from step().
class ProgressDriver {
 public:
  /// Between progress kernels that nobody waits for: a barrier is likely to end, and to say that nothing is
  /// left.
  static constexpr std::chrono::microseconds kPause{50};

  ProgressDriver(ProgressLauncher& launcher, HostWords& host, const HandlerRegistry& handlers,
                 std::chrono::microseconds pause = kPause)
      : host_{host}, handlers_{handlers}, pause_{pause}, starter_{launcher, host} {}

  /// Takes the result of a progress kernel that has ended, and asks for the next one if there is a reason:
  /// `wanted`, frames in flight, or something that the last one has left. With `handlers`, messages for
  /// handlers may be about. True if something moved.
  bool step(bool wanted, bool handlers, std::uint32_t frames);
  bool is_under_way() const { return ended_ < started_; }
  std::uint64_t started() const { return started_; }
  std::uint64_t ended() const { return ended_; }
  /// DeviceEngine::has_completed_since().
  bool has_completed_since(std::uint64_t progress, std::uint32_t frames) const;
  /// DeviceEngine::complete_round().
  void complete_round();
  /// DeviceEngine::take_drain_request().
  bool take_drain_request();

  /// Of the last progress kernel that has ended.
  const ProgressSnapshot& snapshot() const { return snapshot_; }
  bool was_quiet() const { return was_quiet_; }  // it has found nothing
  /// Something may be left, so another one follows by itself.
  bool is_again_wanted() const { return is_again_wanted_; }

  ProgressStarter& starter() { return starter_; }

 private:
  using Clock = std::chrono::steady_clock;

  void take_result();

  HostWords& host_;
  const HandlerRegistry& handlers_;
  const std::chrono::microseconds pause_;
  std::uint64_t started_ = 0;
  std::uint64_t ended_ = 0;
  std::uint32_t frames_at_start_ = 0;  // of the last one
  std::size_t handler_ = 0;            // of the last one
  bool with_handlers_ = false;         // as step() was told
  bool was_quiet_ = false;
  bool is_again_wanted_ = false;
  Clock::time_point again_at_;     // not before
  bool has_new_packages_ = false;  // for peers, sent by handlers here
  ProgressSnapshot snapshot_{};
  ProgressStarter starter_;  // last: its thread uses the words and the handlers
};

}  // namespace esker::gpu
