// The first failure of a PE's runtime threads, kept for the user's next call.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include <esker/device/error.hpp>

namespace esker {

/// Contract. Any thread. The first set() wins; raise_if_set() throws it as an Error, each time it is called.
class Failure {
 public:
  /// True if this is the first one.
  bool set(Error::Kind kind, std::string message) {
    const std::lock_guard lock(mutex_);
    if (is_set_.load(std::memory_order_relaxed)) return false;
    kind_ = kind;
    message_ = std::move(message);
    is_set_.store(true, std::memory_order_release);  // [failure]
    return true;
  }
  bool is_set() const { return is_set_.load(std::memory_order_acquire); }  // [failure]
  void raise_if_set() const {
    if (!is_set()) return;
    if (before_raise_) before_raise_();
    throw Error(kind_, message_);
  }
  /// Called before each throw: when the caller hears of it, nothing touches its memory any more. Set while no
  /// other thread runs.
  void set_before_raise(std::function<void()> function) { before_raise_ = std::move(function); }
  Error::Kind kind() const { return kind_; }               // once set
  const std::string& message() const { return message_; }  // once set

 private:
  std::mutex mutex_;
  std::atomic<bool> is_set_{false};
  Error::Kind kind_ = Error::Kind::kNetwork;
  std::string message_;
  std::function<void()> before_raise_;
};

}  // namespace esker
