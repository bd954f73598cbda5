// The report of a run in which nothing moves, and the thread that notices.
#include <esker/tasks/hang.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <esker/tasks/state.hpp>

namespace esker::tasks::detail {
namespace {

constexpr std::uint32_t kMostNamed = 32;  // domains, and stacks, one by one

std::string target(std::uint32_t join) {
  if (join == kNone) return "its results are the run's";
  if (join == kJoinsElsewhere) return "its results go to another PE";
  return fmt::format("its results go to join record {}", join);
}

}  // namespace

void Progress::reset() {
  for (Line& line : domains_) {
    line.doing.store_relaxed(static_cast<std::uint32_t>(Doing::kNothing));
    line.moves.store_relaxed(0);
  }
  for (Stack& stack : stacks_) stack.left_by.store_relaxed(kNone);
}

std::uint64_t Progress::moves() const {
  std::uint64_t sum = 0;
  for (const Line& line : domains_) sum += line.moves.load_relaxed();
  return sum;
}

std::string Progress::report(const std::uint32_t* join_words, std::size_t words_a_join) const {
  std::string text;
  std::uint32_t asking = 0, working = 0, left = 0;
  for (std::uint32_t d = 0; d < domains_.size(); ++d) {
    const Line& line = domains_[d];
    const auto doing = static_cast<Doing>(line.doing.load_relaxed());
    if (doing == Doing::kNothing || doing == Doing::kAsks) {
      asking += doing == Doing::kAsks ? 1 : 0;
      continue;
    }
    if (++working > kMostNamed) continue;
    const std::uint32_t type = line.type.load_relaxed(), segment = line.segment.load_relaxed();
    const std::string what =
        doing == Doing::kRuns ? fmt::format("in a batch of tasks of type {} that has not returned", type)
        : doing == Doing::kContinues ? "in a batch of continuations that has not returned"
                                     : "in the scheduler";
    text += fmt::format("\n  domain {}: {}, in segment {} of its stack; {}", d, what, segment,
                        target(line.goes_to.load_relaxed()));
  }
  for (std::uint32_t j = 0; j < stacks_.size(); ++j) {
    const std::uint32_t by = stacks_[j].left_by.load_relaxed();
    if (by == kNone || ++left > kMostNamed) continue;
    const auto& out = reinterpret_cast<const DeviceAtomic<std::uint32_t>&>(join_words[j * words_a_join]);
    text += fmt::format(
        "\n  join record {}: a stack of {} segments that domain {} has left waits for {} bundles of tasks; "
        "{}",
        j, stacks_[j].segment.load_relaxed() + 1, by, out.load_relaxed(),
        target(stacks_[j].goes_to.load_relaxed()));
  }
  return fmt::format("{} of {} domains work, {} ask for work, {} stacks wait{}", working, domains_.size(),
                     asking, left, text);
}

class HangWatch::Thread {
 public:
  Thread(std::uint32_t domains, std::uint32_t joins, Joins join_words, std::chrono::milliseconds limit,
         std::function<void(const std::string&)> say, std::string where)
      : progress_{domains, joins},
        joins_{join_words},
        limit_{limit},
        say_{std::move(say)},
        where_{std::move(where)},
        thread_{[this] { watch(); }} {}
  ~Thread() {
    tell([this] { ends_ = true; });
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  Progress& progress() { return progress_; }
  void begin() {
    progress_.reset();
    tell([this] { is_running_ = true; });
  }
  void end() {
    tell([this] { is_running_ = false; });
  }

 private:
  using Clock = std::chrono::steady_clock;

  template <class Change>
  void tell(const Change& change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    changed_.notify_one();
  }
  void watch() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return is_running_ || ends_; });
      if (ends_) return;
      watch_run(lock);
    }
  }
  void watch_run(std::unique_lock<std::mutex>& lock) {
    const auto interval = std::max(std::chrono::milliseconds{1}, limit_ / 4);
    std::uint64_t seen = 0;
    Clock::time_point since = Clock::now();
    bool has_said = false;
    while (true) {
      changed_.wait_for(lock, interval, [this] { return !is_running_ || ends_; });
      if (!is_running_ || ends_) return;
      const std::uint64_t moves = progress_.moves();
      if (moves != seen) {
        seen = moves;
        since = Clock::now();
        has_said = false;
      } else if (!has_said && Clock::now() - since >= limit_) {
        has_said = true;
        say();
      }
    }
  }
  void say() const {
    const std::string text = fmt::format("tasks on {}: nothing has moved for {} ms: {}", where_,
                                         limit_.count(), progress_.report(joins_.words, joins_.words_each));
    if (say_) {
      say_(text);
    } else {
      fmt::print(stderr, "{}\n", text);
    }
  }

  Progress progress_;
  const Joins joins_;
  const std::chrono::milliseconds limit_;
  const std::function<void(const std::string&)> say_;
  const std::string where_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_running_ = false, ends_ = false;  // under mutex_
  std::jthread thread_;                     // last: it uses the others, and is joined first
};

ESKER_API HangWatch::HangWatch(std::uint32_t domains, std::uint32_t joins, Joins join_words,
                               std::chrono::milliseconds limit, std::function<void(const std::string&)> say,
                               std::string where)
    : thread_{std::make_unique<Thread>(domains, joins, join_words, limit, std::move(say), std::move(where))} {
}
ESKER_API HangWatch::~HangWatch() = default;
ESKER_API Progress& HangWatch::progress() { return thread_->progress(); }
ESKER_API void HangWatch::begin() { thread_->begin(); }
ESKER_API void HangWatch::end() { thread_->end(); }

}  // namespace esker::tasks::detail
