// Which call of Esker the user's thread is in, for reports, and what the last kernel there threw.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include <esker/net/failure.hpp>

namespace esker {

/// Contract. The user's thread enters and leaves calls by a Scope; the observations are for any thread.
class CurrentCall {
 public:
  using Clock = std::chrono::steady_clock;

  explicit CurrentCall(const Failure& failure) : failure_{failure} {}

  struct Call {
    const char* name = nullptr;
    Clock::time_point since;
    bool is_kernel = false;
  };
  /// Refuses calls after a failure: throws it.
  class Scope {
   public:
    /// `name` stays valid until the end of the scope.
    Scope(CurrentCall& current, const char* name, bool is_kernel = false) : current_{current} {
      current_.failure_.raise_if_set();
      current_.thrown_.clear();
      current_.count_one();
      const std::lock_guard lock(current_.mutex_);
      before_ = current_.call_;
      current_.call_ = {name, Clock::now(), is_kernel};
    }
    ~Scope() {
      {
        const std::lock_guard lock(current_.mutex_);
        current_.call_ = before_;
      }
      current_.count_one();
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    CurrentCall& current_;
    Call before_;  // where a call is made of others
  };

  struct Seen {
    std::string name;
    double seconds;
    bool is_kernel;
  };
  /// Nothing: the user's thread is outside Esker.
  std::optional<Seen> was_in() const {
    const std::lock_guard lock(mutex_);  // also keeps the name from going meanwhile
    if (call_.name == nullptr) return std::nullopt;
    return Seen{call_.name, std::chrono::duration<double>(Clock::now() - call_.since).count(),
                call_.is_kernel};
  }

  /// Grows with each call that begins or ends.
  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  void count_one() { count_.fetch_add(1, std::memory_order_relaxed); }

  /// The user's thread: what the last call threw, if that was a kernel's. Peers hear of it if this PE leaves.
  const std::string& thrown() const { return thrown_; }
  void set_thrown(std::string what) { thrown_ = std::move(what); }

 private:
  const Failure& failure_;
  std::atomic<std::uint64_t> count_{0};
  std::string thrown_;
  mutable std::mutex mutex_;
  Call call_;  // guarded by mutex_
};

}  // namespace esker
