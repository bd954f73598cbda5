// What a run keeps of itself where it is asked to: when domains worked, and their batches by channel and
// level.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <esker/device/atomic.hpp>
#include <esker/device/platform.hpp>
#include <esker/tasks/progress.hpp>

namespace esker::tasks {

/// A time in which a domain had work: from a bundle of tasks to its stack's end. Nanoseconds of the device's
/// clock; what it waited for is between spans.
struct Span {
  std::uint64_t began_ns, ended_ns;
  std::uint64_t tasks;
  std::uint32_t domain;
};

/// Of tasks of one type that domains took from some segments of their stacks: levels that stand together. A
/// stack starts at the tasks that its domain was given, so this is not the depth of the whole recursion.
struct LevelCounts {
  std::uint32_t channel;        // the type's number: the order in which the first task's Spawns reach it
  std::uint32_t first_segment;  // those from this one to the next power of two: 0, 1, 2, 4, 8, ...
  std::uint64_t tasks, batches, full_batches;
};

/// Of one run with Options::watch.
struct Watched {
  std::vector<Span> spans;           // by the time of their end
  std::uint64_t spans_dropped = 0;   // beyond kMostSpans
  std::vector<LevelCounts> levels;   // that had tasks
  std::vector<std::uint64_t> given;  // of each channel that has some: tasks that went to another domain
};

/// Spans for a viewer (https://ui.perfetto.dev, chrome://tracing), a track a domain: a file's text.
ESKER_API std::string trace_json(const Watched& watched);

namespace detail {

/// Where the domains of a run leave it. Off: nothing is kept.
class Watch {
 public:
  static constexpr std::uint32_t kMostSpans = 1 << 16;
  static constexpr std::uint32_t kChannels = 16;  // types beyond are counted with the last
  static constexpr std::uint32_t kLevels = 24;    // powers of two
  struct Memory {
    DeviceAtomic<std::uint64_t> spans;  // that ended, kept or not
    DeviceAtomic<std::uint64_t> counts[kChannels][kLevels][3];
    DeviceAtomic<std::uint64_t> given[kChannels];
    Span kept[kMostSpans];
  };

  Watch() = default;
  /// Null: no spans and counts; nobody looks for hangs.
  Watch(Memory* memory, bool times_tasks, const Progress& progress)
      : memory_{memory}, times_tasks_{times_tasks}, progress_{progress} {}
  ESKER_HD bool is_on() const { return memory_ != nullptr; }
  ESKER_HD bool times_tasks() const { return times_tasks_; }
  ESKER_HD const Progress& progress() const { return progress_; }

  // One lane of a domain calls; the watch is on.

  ESKER_HD void add_batch(std::uint32_t channel, std::uint32_t segment, std::uint32_t tasks,
                          bool is_full) const {
    auto* const counts = counts_of(channel, segment);
    (void)counts[0].fetch_add_relaxed(tasks);
    (void)counts[1].fetch_add_relaxed(1);
    if (is_full) (void)counts[2].fetch_add_relaxed(1);
  }
  ESKER_HD void add_given(std::uint32_t channel, std::uint32_t tasks) const {
    (void)memory_->given[channel < kChannels ? channel : kChannels - 1].fetch_add_relaxed(tasks);
  }
  ESKER_HD void add_span(const Span& span) const {
    const std::uint64_t number = memory_->spans.fetch_add_relaxed(1);
    if (number < kMostSpans) memory_->kept[number] = span;
  }

 private:
  ESKER_HD DeviceAtomic<std::uint64_t>* counts_of(std::uint32_t channel, std::uint32_t segment) const {
    std::uint32_t bits = 0;
    while (bits + 1 < kLevels && segment >> bits != 0) ++bits;
    return memory_->counts[channel < kChannels ? channel : kChannels - 1][bits];
  }

  Memory* memory_ = nullptr;
  bool times_tasks_ = false;
  Progress progress_;
};

/// What a run left there.
ESKER_API Watched watched_in(const Watch::Memory& memory);

}  // namespace detail
}  // namespace esker::tasks
