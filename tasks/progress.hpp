// What domains say of themselves, for a host that wants to know why a run goes on for so long.
#pragma once

#include <cstddef>
#include <cstdint>

#include <esker/device/atomic.hpp>
#include <esker/device/platform.hpp>

namespace esker::tasks::detail {

/// What a domain does.
enum class Doing : std::uint32_t { kNothing, kAsks, kSchedules, kRuns, kContinues };

/// Where the domains of a run say what they do, in the device's memory. By value, into kernels.
///
/// Contract One lane of a domain writes its line. The host reads, and finds each word as it was at some time.
///          Words of one line may be of different times while it changes; of a line that has not changed for
///          long they belong together.
class Progress {
 public:
  struct Line {
    alignas(64) DeviceAtomic<std::uint32_t> doing;  // a Doing
    DeviceAtomic<std::uint32_t> what;               // a task's type, or a channel
    DeviceAtomic<std::uint32_t> where, goes_to;     // the run's own
    DeviceAtomic<std::uint64_t> moves;              // times that the line was written
  };

  /// Nobody looks.
  Progress() = default;
  /// `notes`: words that are the run's own. All are zero when a run begins.
  Progress(Line* lines, DeviceAtomic<std::uint32_t>* notes) : lines_{lines}, notes_{notes} {}

  ESKER_HD bool is_on() const { return lines_ != nullptr; }
  ESKER_HD void is_doing(std::uint32_t domain, Doing doing, std::uint32_t what, std::uint32_t where,
                         std::uint32_t goes_to) const {
    Line& line = lines_[domain];
    line.doing.store_relaxed(static_cast<std::uint32_t>(doing));
    line.what.store_relaxed(what);
    line.where.store_relaxed(where);
    line.goes_to.store_relaxed(goes_to);
    line.moves.store_relaxed(line.moves.load_relaxed() + 1);
  }
  ESKER_HD DeviceAtomic<std::uint32_t>& note(std::size_t number) const { return notes_[number]; }

 private:
  Line* lines_ = nullptr;
  DeviceAtomic<std::uint32_t>* notes_ = nullptr;
};

/// Notes of a run of fork-join: of each join record, whose stack a domain has left until tasks that it has
/// given are back.
struct LeftStack {
  static constexpr std::uint32_t kLeftBy = 0;  // the domain's number and one; 0: no stack is left
  static constexpr std::uint32_t kSegment = 1, kGoesTo = 2;
  static constexpr std::uint32_t kWords = 3;

  ESKER_HD static void leaves(const Progress& progress, std::uint32_t join, std::uint32_t domain,
                              std::uint32_t segment, std::uint32_t goes_to) {
    const std::size_t first = std::size_t{join} * kWords;
    progress.note(first + kSegment).store_relaxed(segment);
    progress.note(first + kGoesTo).store_relaxed(goes_to);
    progress.note(first + kLeftBy).store_relaxed(domain + 1);
  }
  ESKER_HD static void is_taken(const Progress& progress, std::uint32_t join) {
    progress.note(std::size_t{join} * kWords + kLeftBy).store_relaxed(0);
  }
};

}  // namespace esker::tasks::detail
