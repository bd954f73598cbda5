// A GPU of threads: its copy engines. Bytes flow at rates that change only when a copy begins or ends.
#include <esker/device/cpu/timers.hpp>
#include <esker/device/error.hpp>
#include <esker/device/simulated/engines.hpp>
#include <esker/device/simulated/parts.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

namespace esker::simulated {
namespace {

using Clock = std::chrono::steady_clock;

/// "bytes_per_s=1e9,both_bytes_per_s=1.5e9,root_bytes_per_s=2e9,startup_us=20". 0: no limit of its own.
struct Speed {
  double bytes_per_s = 0;       // of an engine
  double both_bytes_per_s = 0;  // of the two of a device together
  double root_bytes_per_s = 0;  // of all devices together, each direction
  double startup_us = 0;        // before a copy's first byte
};

Speed read_speed(const std::string& text) {
  Speed speed;
  const struct {
    const char* name;
    double* value;
  } known[] = {{"bytes_per_s", &speed.bytes_per_s},
               {"both_bytes_per_s", &speed.both_bytes_per_s},
               {"root_bytes_per_s", &speed.root_bytes_per_s},
               {"startup_us", &speed.startup_us}};
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    at = end + 1;
    const std::size_t equals = part.find('=');
    bool is_known = false;
    for (const auto& one : known) {
      if (equals == std::string::npos || part.substr(0, equals) != one.name) continue;
      char* rest = nullptr;
      *one.value = std::strtod(part.c_str() + equals + 1, &rest);
      is_known =
          std::isfinite(*one.value) && *rest == '\0' && rest != part.c_str() + equals + 1 && *one.value >= 0;
    }
    if (!is_known) {
      misuse(fmt::format(
          "SIMULATED_COPY: '{}' is no number of bytes_per_s, both_bytes_per_s, root_bytes_per_s or "
          "startup_us",
          part));
    }
  }
  if (speed.bytes_per_s <= 0) misuse(fmt::format("SIMULATED_COPY is '{}': bytes_per_s is missing", text));
  return speed;
}

std::string setting() {
  const char* const text = std::getenv("SIMULATED_COPY");
  return text == nullptr ? "" : text;
}

class Engines {
 public:
  Moment take(int from, int to, std::size_t bytes, Moment ready, const std::function<void()>& move) {
    std::unique_lock lock(mutex_);
    advance(ready);
    move_to(ready);
    if (const std::string now = setting(); now != text_) {
      text_ = now;
      speed_ = read_speed(now);
    }
    Copy copy{from, to, static_cast<double>(bytes), {}, {}, 0, false, false};
    std::deque<Copy*>& queue = queues_[engine_of(copy)];
    queue.push_back(&copy);
    if (queue.size() == 1) begin(copy, std::max(ready, now_));
    news_.notify_all();
    lock.unlock();
    move();
    lock.lock();
    for (;;) {
      advance(Clock::now());
      if (copy.is_done) return copy.end;
      news_.wait_until(lock, next_event());
    }
  }

 private:
  struct Copy {
    int from, to;
    double left;  // bytes
    Moment starts, end;
    double bytes_per_s;
    bool has_begun, is_done;
  };
  static constexpr std::size_t kOut = 0, kIn = kDevices, kBoth = 2 * kDevices, kRootOut = 3 * kDevices,
                               kRootIn = kRootOut + 1, kResources = kRootIn + 1;

  static std::size_t engine_of(const Copy& copy) {
    return copy.from >= 0 ? kOut + static_cast<std::size_t>(copy.from)
                          : kIn + static_cast<std::size_t>(copy.to);
  }
  /// What a copy needs a part of. Between devices no root.
  static std::vector<std::size_t> needs(const Copy& copy) {
    std::vector<std::size_t> all;
    if (copy.from >= 0) {
      all.push_back(kOut + static_cast<std::size_t>(copy.from));
      all.push_back(kBoth + static_cast<std::size_t>(copy.from));
      if (copy.to < 0) all.push_back(kRootOut);
    }
    if (copy.to >= 0) {
      all.push_back(kIn + static_cast<std::size_t>(copy.to));
      all.push_back(kBoth + static_cast<std::size_t>(copy.to));
      if (copy.from < 0) all.push_back(kRootIn);
    }
    return all;
  }

  void begin(Copy& copy, Moment when) {
    copy.starts = when + std::chrono::nanoseconds(static_cast<std::int64_t>(speed_.startup_us * 1e3));
    under_way_.push_back(&copy);
    set_rates();
  }
  Moment end_of(const Copy& copy) const {
    if (!copy.has_begun) return copy.starts;
    return now_ + std::chrono::nanoseconds(static_cast<std::int64_t>(copy.left / copy.bytes_per_s * 1e9) + 1);
  }
  Moment next_event() const {
    Moment next = now_ + std::chrono::hours(1);
    for (const Copy* const copy : under_way_) next = std::min(next, end_of(*copy));
    return next;
  }
  void move_to(Moment to) {
    if (to <= now_) return;
    const double passed = std::chrono::duration<double>(to - now_).count();
    for (Copy* const copy : under_way_) {
      if (copy->has_begun) copy->left -= passed * copy->bytes_per_s;
    }
    now_ = to;
  }
  /// Everything that has begun or ended up to `until`, in the order in which it has. now_ stays at the last
  /// of it: a thread that comes late may have something that began since.
  void advance(Moment until) {
    for (;;) {
      const Moment next = next_event();
      if (next > until) return;
      move_to(next);
      const std::vector<Copy*> before = under_way_;
      for (Copy* const copy : before) {
        if (!copy->has_begun && copy->starts <= now_) {
          copy->has_begun = true;
        } else if (copy->has_begun && copy->left <= 0.5) {
          copy->is_done = true;
          copy->end = now_;
          under_way_.erase(std::find(under_way_.begin(), under_way_.end(), copy));
          std::deque<Copy*>& queue = queues_[engine_of(*copy)];
          queue.pop_front();
          if (!queue.empty()) begin(*queue.front(), now_);
          news_.notify_all();
        }
      }
      set_rates();
    }
  }
  /// Repeatedly: what has the least for each of those that need it gives them that, for good.
  void set_rates() {
    std::array<double, kResources> left;
    left.fill(std::numeric_limits<double>::infinity());
    for (std::size_t d = 0; d < kDevices; ++d) {
      left[kOut + d] = left[kIn + d] = speed_.bytes_per_s;
      if (speed_.both_bytes_per_s > 0) left[kBoth + d] = speed_.both_bytes_per_s;
    }
    if (speed_.root_bytes_per_s > 0) left[kRootOut] = left[kRootIn] = speed_.root_bytes_per_s;
    std::vector<Copy*> open;
    for (Copy* const copy : under_way_) {
      if (copy->has_begun) open.push_back(copy);
    }
    while (!open.empty()) {
      std::array<int, kResources> users{};
      for (const Copy* const copy : open) {
        for (const std::size_t resource : needs(*copy)) ++users[resource];
      }
      std::size_t scarcest = kResources;
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t r = 0; r < kResources; ++r) {
        if (users[r] == 0 || left[r] / users[r] >= least) continue;
        least = left[r] / users[r];
        scarcest = r;
      }
      std::vector<Copy*> still;
      for (Copy* const copy : open) {
        const std::vector<std::size_t> all = needs(*copy);
        if (std::find(all.begin(), all.end(), scarcest) == all.end()) {
          still.push_back(copy);
          continue;
        }
        copy->bytes_per_s = least;
        for (const std::size_t resource : all) left[resource] -= least;
      }
      open = std::move(still);
    }
  }

  std::mutex mutex_;
  std::condition_variable news_;
  std::string text_;
  Speed speed_;
  Moment now_ = Clock::now();
  std::vector<Copy*> under_way_;  // one an engine
  std::array<std::deque<Copy*>, 2 * kDevices> queues_;
};

}  // namespace

bool copies_take_time() { return !setting().empty(); }

Moment take_copy(int from, int to, std::size_t bytes, Moment ready, const std::function<void()>& move) {
  static Engines engines;
  thread_local const bool wakes_on_time = (use_fine_timers(), true);
  (void)wakes_on_time;
  return engines.take(from, to, bytes, ready, move);
}

}  // namespace esker::simulated
