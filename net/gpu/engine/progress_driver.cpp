// Decisions about progress kernels.
#include <cstring>
#include <esker/net/gpu/engine/progress_driver.hpp>

namespace esker::gpu {

bool ProgressDriver::step(bool wanted, bool handlers, std::uint32_t frames) {
  starter_.check();
  with_handlers_ = handlers;
  bool moved = false;
  if (is_under_way()) {
    if (host_.progress_kernel.load_acquire() != started_) return false;  // [progress]
    take_result();
    moved = true;
  }
  if (!wanted && frames == 0 && (!is_again_wanted_ || Clock::now() < again_at_)) return moved;
  frames_at_start_ = frames;
  handler_ = handlers_.next_in_turn(snapshot_.waiting, handler_);
  starter_.ask(++started_, handler_);
  return true;
}

void ProgressDriver::take_result() {
  ended_ = started_;
  const std::uint64_t packages = snapshot_.totals.packages;
  std::memcpy(&snapshot_, &host_.snapshot, sizeof snapshot_);
  // A peer where nobody sends applies what handlers here have sent only in a progress kernel.
  has_new_packages_ |= snapshot_.totals.packages != packages;
  was_quiet_ = snapshot_.moved == 0 && snapshot_.handler_backlog == 0 && snapshot_.waiting == 0;
  is_again_wanted_ = !was_quiet_;
  again_at_ = Clock::now() + pause_;
}

bool ProgressDriver::has_completed_since(std::uint64_t progress, std::uint32_t frames) const {
  return ended_ > progress && (was_quiet_ || !with_handlers_) && frames == 0 && frames_at_start_ == 0;
}

void ProgressDriver::complete_round() {
  host_.calls_handlers.store_relaxed(0);
  // A PE that has left the barrier earlier may have sent messages that a progress kernel has seen already.
  is_again_wanted_ = snapshot_.handler_backlog > 0 || snapshot_.waiting != 0;
}

bool ProgressDriver::take_drain_request() {
  bool wanted = starter_.take_kernels_ended() || has_new_packages_;
  has_new_packages_ = false;
  if (host_.starving.load_relaxed() != 0) {
    host_.starving.store_relaxed(0);
    wanted = true;
  }
  return wanted;
}

}  // namespace esker::gpu
