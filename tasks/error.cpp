// The words of a run that ended early.
#include <esker/tasks/error.hpp>

#include <fmt/format.h>

#include <esker/tasks/options.hpp>
#include <esker/tasks/state.hpp>

namespace esker::tasks::detail {

[[noreturn]] ESKER_API void throw_outcome(const RunState& run, const std::string& device,
                                          const Options& options) {
  const std::array<std::uint64_t, 2> values{run.error_values[0], run.error_values[1]};
  const auto raise = [&](Error::Kind kind, TaskError::Reason reason, const std::string& message) {
    throw TaskError(kind, fmt::format("tasks on {}: {}", device, message), reason, run.error_code, values);
  };
  switch (static_cast<Outcome>(run.outcome.load_relaxed())) {
    case Outcome::kFailed:
      raise(Error::Kind::kTask, TaskError::Reason::kFailed,
            fmt::format("a task of type {} failed with code {} ({}, {})", run.error_type, run.error_code,
                        values[0], values[1]));
      break;
    case Outcome::kMisuse:
      raise(
          Error::Kind::kTask, TaskError::Reason::kMisuse,
          run.error_code == 1
              ? fmt::format("a task of type {} spawned {} children in one call; its kMaxSpawns is {}",
                            run.error_type, values[0], values[1])
              : fmt::format("a task of type {} called give() or then() {} times; it calls one of them, once",
                            run.error_type, values[0]));
      break;
    case Outcome::kOutOfMemory:
      raise(Error::Kind::kOutOfMemory, TaskError::Reason::kOutOfMemory,
            fmt::format("memory_bytes ({}) does not hold the tasks that wait: allow more, or fewer domains",
                        options.memory_bytes));
      break;
    default:
      break;
  }
  throw TaskError(Error::Kind::kTask, fmt::format("tasks on {}: stopped on request", device),
                  TaskError::Reason::kStopped, 0, {});
}

[[noreturn]] ESKER_API void refuse_memory(std::uint64_t memory_bytes, std::uint64_t least) {
  throw Error(Error::Kind::kConfiguration,
              fmt::format("tasks: memory_bytes is {}, and the least for tasks of this size is {}",
                          memory_bytes, least));
}

}  // namespace esker::tasks::detail
