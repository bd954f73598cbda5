// The report of a run in which nothing moves, and who notices.
#include <esker/tasks/hang.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include <esker/error.hpp>
#include <esker/tasks/ending.hpp>
#include <esker/tasks/state.hpp>

namespace esker::tasks::detail {
namespace {

// What clocks count in 64 bits of nanoseconds, with a time added to it.
constexpr std::chrono::milliseconds kLongest = std::chrono::hours{24 * 365 * 100};

std::string target(std::uint32_t join) {
  if (join == kNone) return "its results are the run's";
  if (join == kJoinsElsewhere) return "its results go to another PE";
  return fmt::format("its results go to join record {}", join);
}

}  // namespace

HangWatch::HangWatch(const Device& device, const Options& options, std::string kind, Ending* ending,
                     std::uint32_t domains, std::size_t notes, Explain explain)
    : device_{device},
      limit_{std::min(options.hang_after, kLongest)},
      on_hang_{options.on_hang},
      kind_{std::move(kind)},
      ending_{ending},
      domains_{domains},
      notes_{notes},
      explain_{std::move(explain)},
      peek_{device},
      line_memory_{device.memory<Progress::Line>(domains, {"what domains do"})},
      note_memory_{
          device.memory<DeviceAtomic<std::uint32_t>>(std::max<std::size_t>(notes, 1), {"what domains do"})},
      progress_{line_memory_.data(), note_memory_.data()} {}

void HangWatch::begin() {
  peek_.fill(line_memory_.data(), 0, line_memory_.size_bytes());
  peek_.fill(note_memory_.data(), 0, note_memory_.size_bytes());
  thrown_ = nullptr;
  moves_ = more_ = 0;
  was_still_ = has_said_ = false;
  moved_at_ = looked_at_ = Clock::now();
}

std::chrono::milliseconds HangWatch::interval() const {
  return std::max(std::chrono::milliseconds{1}, limit_ / 4);
}

bool HangWatch::was_still(std::uint64_t more) {
  const auto now = Clock::now();
  if (now - looked_at_ < interval()) return was_still_;
  looked_at_ = now;
  const auto lines = peek_(line_memory_.data(), domains_);
  std::uint64_t moves = 0;
  for (std::uint32_t d = 0; d < domains_; ++d) moves += lines[d].moves.load_relaxed();
  if (moves != moves_ || more != more_) {
    moves_ = moves;
    more_ = more;
    moved_at_ = now;
  }
  was_still_ = now - moved_at_ >= limit_;
  return was_still_;
}

void HangWatch::say(const std::string& where, const std::string& more) {
  const SeenProgress seen{domains_, peek_(line_memory_.data(), domains_), peek_(note_memory_.data(), notes_)};
  const std::string text =
      fmt::format("{} on {}: nothing has moved for {} ms: {}{}", kind_,
                  where.empty() ? device_.name() : where, limit_.count(), explain_(seen, peek_), more);
  if (!on_hang_) {
    fmt::print(stderr, "{}\n", text);
    return;
  }
  try {
    on_hang_(text);
  } catch (...) {
    thrown_ = std::current_exception();
  }
}

void HangWatch::look() {
  if (!has_thrown()) {
    const bool is_still = was_still();
    if (is_still && !has_said_) say();
    has_said_ = is_still;
    if (!has_thrown()) return;
  }
  // At each look from then on: a run on a GPU may set its word to 0 after the first.
  if (device_.backend() == Backend::kCpu) {
    (void)ending_->end(Outcome::kStopped);
  } else {
    peek_.fill(&ending_->stop_word, 1, sizeof ending_->stop_word);
  }
}

WatchedForHangs::WatchedForHangs(HangWatch* watch) {
  if (watch == nullptr) return;
  watch->begin();
  thread_ = std::jthread([this, watch] {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, watch->interval(), [this] { return has_ended_; })) {
      lock.unlock();  // the run ends while on_hang takes its time
      try {
        watch->look();
      } catch (const Error&) {
        return;  // the device has failed: run() says so
      }
      lock.lock();
    }
  });
}

WatchedForHangs::~WatchedForHangs() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  changed_.notify_one();
}

std::string explain_fork_join(const SeenProgress& seen, const Peek& peek, const std::uint32_t* join_words,
                              std::size_t words_a_join, std::uint32_t joins) {
  std::string text;
  std::uint32_t asking = 0, working = 0, left = 0;
  for (std::uint32_t d = 0; d < seen.domains; ++d) {
    const Progress::Line& line = seen.lines[d];
    const auto doing = static_cast<Doing>(line.doing.load_relaxed());
    if (doing == Doing::kNothing || doing == Doing::kAsks) {
      asking += doing == Doing::kAsks ? 1 : 0;
      continue;
    }
    if (++working > kMostNamed) continue;
    const std::string what =
        doing == Doing::kRuns
            ? fmt::format("in a batch of tasks of type {} that has not returned", line.what.load_relaxed())
        : doing == Doing::kContinues ? "in a batch of continuations that has not returned"
                                     : "in the scheduler";
    text += fmt::format("\n  domain {}: {}, in segment {} of its stack; {}", d, what,
                        line.where.load_relaxed(), target(line.goes_to.load_relaxed()));
  }
  for (std::uint32_t j = 0; j < joins; ++j) {
    const auto note = [&](std::uint32_t word) {
      return seen.notes[std::size_t{j} * LeftStack::kWords + word].load_relaxed();
    };
    const std::uint32_t by = note(LeftStack::kLeftBy);
    if (by == 0 || ++left > kMostNamed) continue;
    const auto out =
        peek(reinterpret_cast<const DeviceAtomic<std::uint32_t>*>(join_words + j * words_a_join), 1);
    text += fmt::format(
        "\n  join record {}: a stack of {} segments that domain {} has left waits for {} bundles of tasks; "
        "{}",
        j, note(LeftStack::kSegment) + 1, by - 1, out[0].load_relaxed(), target(note(LeftStack::kGoesTo)));
  }
  return fmt::format("{} of {} domains work, {} ask for work, {} stacks wait{}", working, seen.domains,
                     asking, left, text);
}

}  // namespace esker::tasks::detail
