// The words of a run that ended early.
#include <esker/tasks/error.hpp>

#include <fmt/format.h>

#include <esker/tasks/channel.hpp>
#include <esker/tasks/options.hpp>
#include <esker/tasks/state.hpp>

namespace esker::tasks::detail {
namespace {

std::string misuse(const RunEnd& run) {
  switch (run.error_code) {
    case 1:
      return fmt::format("a task of type {} spawned {} children in one call; its kMaxSpawns is {}",
                         run.error_type, run.error_values[0], run.error_values[1]);
    case 2:
      return fmt::format("a task of type {} called give() or then() {} times; it calls one of them, once",
                         run.error_type, run.error_values[0]);
    default:
      return fmt::format("a task of type {} spawned a child on PE {}; PEs are below {}", run.error_type,
                         run.error_values[0], run.error_values[1]);
  }
}

}  // namespace

[[noreturn]] ESKER_API void throw_outcome(const RunEnd& run, const std::string& where,
                                          std::uint64_t memory_bytes) {
  const auto raise = [&](Error::Kind kind, TaskError::Reason reason, const std::string& message,
                         std::int32_t code = 0, const std::array<std::uint64_t, 2>& values = {}) {
    throw TaskError(kind, fmt::format("tasks on {}: {}", where, message), reason, code, values);
  };
  switch (run.outcome) {
    case Outcome::kFailed:
      raise(Error::Kind::kTask, TaskError::Reason::kFailed,
            fmt::format("a task of type {} failed with code {} ({}, {})", run.error_type, run.error_code,
                        run.error_values[0], run.error_values[1]),
            run.error_code, {run.error_values[0], run.error_values[1]});
      break;
    case Outcome::kThrew:
      raise(Error::Kind::kTask, TaskError::Reason::kFailed, "a task threw what run() throws there");
      break;
    case Outcome::kMisuse:
      raise(Error::Kind::kTask, TaskError::Reason::kMisuse, misuse(run));
      break;
    case Outcome::kOutOfMemory:
      raise(Error::Kind::kOutOfMemory, TaskError::Reason::kOutOfMemory,
            fmt::format("memory_bytes ({}) does not hold the tasks that wait: allow more, or fewer domains",
                        memory_bytes));
      break;
    default:
      break;
  }
  throw TaskError(Error::Kind::kTask, fmt::format("tasks on {}: stopped on request", where),
                  TaskError::Reason::kStopped, 0, {});
}

ESKER_API void check_capacity(std::uint32_t capacity) {
  if (capacity <= 1u << 31) return;
  throw Error(Error::Kind::kConfiguration,
              fmt::format("tasks: a channel's capacity is {}, and the most is 2147483648", capacity));
}

[[noreturn]] ESKER_API void refuse_memory(std::uint64_t memory_bytes, std::uint64_t least) {
  throw Error(Error::Kind::kConfiguration,
              fmt::format("tasks: memory_bytes is {}, and the least for tasks of this size is {}",
                          memory_bytes, least));
}

}  // namespace esker::tasks::detail
