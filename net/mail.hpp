// Letters: bytes that the users' threads of PEs send each other beside messages.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <esker/aggregator/wire.hpp>
#include <esker/net/control.hpp>
#include <esker/net/owner_bell.hpp>
#include <esker/queue/waiting.hpp>

namespace esker {

struct Letter {
  std::uint32_t pe;   // to or from
  std::uint64_t run;  // that it belongs to
  std::string bytes;
};

/// Contract A letter belongs to a run: something collective that PEs begin in the same order, but not at the
///          same time. Letters of a run that this PE has not begun wait; those of earlier ones are dropped.
///          Letters may overtake each other. Each arrives once.
/// Progress No call waits. The network's owner calls step(), any thread the others.
class Mail {
 public:
  Mail(Control& control, OwnerBell& owner_bell, Doorbell& user_bell)
      : control_{control}, owner_bell_{owner_bell}, user_bell_{user_bell} {
    control_.on(wire::Kind::kLetter, [this](const Control::Message& message) {
      {
        const std::lock_guard lock(mutex_);
        arrived_.push_back({message.source, message.value, std::string(message.text)});
      }
      has_arrived_.store(true, std::memory_order_release);
      user_bell_.ring();
    });
  }
  Mail(const Mail&) = delete;
  Mail& operator=(const Mail&) = delete;

  /// Of one letter.
  std::size_t most_bytes() const { return control_.most_text_bytes(); }

  /// The number of the next run.
  std::uint64_t begin_run() {
    has_arrived_.store(true, std::memory_order_release);  // what has waited for it
    return ++run_;
  }
  /// To another PE.
  void post(Letter letter) {
    {
      const std::lock_guard lock(mutex_);
      posted_.push_back(std::move(letter));
    }
    has_posted_.store(true, std::memory_order_release);
    owner_bell_.ring();
  }
  /// The next letter of this run.
  std::optional<Letter> try_take(std::uint64_t run) {
    if (!has_arrived_.load(std::memory_order_acquire)) return std::nullopt;
    const std::lock_guard lock(mutex_);
    for (auto letter = arrived_.begin(); letter != arrived_.end();) {
      if (letter->run > run) {
        ++letter;
        continue;
      }
      Letter found = std::move(*letter);
      letter = arrived_.erase(letter);
      if (found.run == run) return found;
    }
    has_arrived_.store(false, std::memory_order_relaxed);
    return std::nullopt;
  }
  /// Racy, for waits.
  bool was_posted() const { return has_posted_.load(std::memory_order_relaxed); }
  bool has_arrived() const { return has_arrived_.load(std::memory_order_relaxed); }

  // Owner.
  bool step() {
    if (!has_posted_.exchange(false, std::memory_order_acquire)) return false;
    std::deque<Letter> letters;
    {
      const std::lock_guard lock(mutex_);
      letters.swap(posted_);
    }
    for (const Letter& letter : letters)
      control_.send(wire::Kind::kLetter, letter.pe, letter.run, letter.bytes);
    return !letters.empty();
  }

 private:
  Control& control_;
  OwnerBell& owner_bell_;
  Doorbell& user_bell_;
  std::uint64_t run_ = 0;  // the user's thread
  std::mutex mutex_;
  std::deque<Letter> posted_, arrived_;  // guarded by mutex_
  std::atomic<bool> has_posted_{false}, has_arrived_{false};
};

}  // namespace esker
