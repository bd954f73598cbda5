// The first failure of a PE's runtime threads, kept for the user's next call.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include <esker/device/error.hpp>

namespace esker {

/// Contract. Any thread. The first set() wins; raise() throws it as an Error, each time it is called.
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
    if (is_set()) throw Error(kind_, message_);
  }
  Error::Kind kind() const { return kind_; }               // once set
  const std::string& message() const { return message_; }  // once set

 private:
  std::mutex mutex_;
  std::atomic<bool> is_set_{false};
  Error::Kind kind_ = Error::Kind::kNetwork;
  std::string message_;
};

}  // namespace esker
