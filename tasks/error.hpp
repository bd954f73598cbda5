// Why a run of tasks ended early.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <esker/error.hpp>

namespace esker::tasks {

/// A run that has no result. kind() is kTask, but for a run that needed more memory: kOutOfMemory.
class ESKER_API TaskError : public Error {
 public:
  enum class Reason {
    kStopped,      // StopToken
    kFailed,       // a task called fail(code, values...), or threw on another PE
    kMisuse,       // a task spawned more than it declares, or where it does not, or gave no result, or two
    kOutOfMemory,  // Options::memory_bytes
    kFull,         // a channel that says WhenFull::kFail, or an output
  };
  TaskError(Kind kind, const std::string& message, Reason reason, std::int32_t code,
            const std::array<std::uint64_t, 2>& values)
      : Error{kind, message}, reason_{reason}, code_{code}, values_{values} {}

  Reason reason() const noexcept { return reason_; }
  /// Of fail(), as values(); else 0.
  std::int32_t code() const noexcept { return code_; }
  const std::array<std::uint64_t, 2>& values() const noexcept { return values_; }

 private:
  Reason reason_;
  std::int32_t code_;
  std::array<std::uint64_t, 2> values_;
};

}  // namespace esker::tasks
