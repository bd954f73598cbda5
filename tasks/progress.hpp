// What domains on the host say of themselves, for whoever wants to know why a run goes on for so long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <esker/device/atomic.hpp>
#include <esker/tasks/level.hpp>

namespace esker::tasks::detail {

/// What a domain does.
enum class Doing : std::uint32_t { kNothing, kAsks, kSchedules, kRuns, kContinues };

/// What domains say of themselves while a run is watched for hangs.
///
/// Contract A domain writes its own line, whoever leaves or takes a stack that of its join record. One other
///          thread reads, and finds each word as it was at some time. Words of one line may be of different
///          times while it changes; of a line that has not changed for long they belong together.
class Progress {
 public:
  Progress(std::uint32_t domains, std::uint32_t joins) : domains_(domains), stacks_(joins) {}

  void is_doing(std::uint32_t domain, Doing doing, std::uint32_t type, std::uint32_t segment,
                std::uint32_t goes_to) {
    Line& line = domains_[domain];
    line.doing.store_relaxed(static_cast<std::uint32_t>(doing));
    line.type.store_relaxed(type);
    line.segment.store_relaxed(segment);
    line.goes_to.store_relaxed(goes_to);
    line.moves.store_relaxed(line.moves.load_relaxed() + 1);
  }
  /// A domain leaves a stack until tasks that it has given are back, or takes it over.
  void leaves(std::uint32_t domain, std::uint32_t join, std::uint32_t segment, std::uint32_t goes_to) {
    stacks_[join].segment.store_relaxed(segment);
    stacks_[join].goes_to.store_relaxed(goes_to);
    stacks_[join].left_by.store_relaxed(domain);
  }
  void takes(std::uint32_t join) { stacks_[join].left_by.store_relaxed(kNone); }

  // --- The reader's.

  void reset();
  /// It changes when something moves.
  std::uint64_t moves() const;
  /// What domains do, which stacks they have left, and for whom these wait. A record's bundles that are out
  /// are counted at join_words[join * words_a_join].
  std::string report(const std::uint32_t* join_words, std::size_t words_a_join) const;

 private:
  struct Line {
    alignas(64) SystemAtomic<std::uint32_t> doing;
    SystemAtomic<std::uint32_t> type, segment, goes_to;
    SystemAtomic<std::uint64_t> moves;
  };
  struct Stack {
    SystemAtomic<std::uint32_t> left_by, segment, goes_to;
  };

  std::vector<Line> domains_;
  std::vector<Stack> stacks_;  // a join record each
};

}  // namespace esker::tasks::detail
