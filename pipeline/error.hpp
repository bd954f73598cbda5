// Why a run of a pipeline ended early.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <esker/error.hpp>

namespace esker::pipeline {

/// A run that did not come to its end. kind() is kTask.
class ESKER_API PipelineError : public Error {
 public:
  enum class Reason {
    kStopped,  // stop(), a StopToken, or a drain() whose deadline passed
    kFailed,   // a stage called fail(code, values...)
    kFull,     // a topic in a loop
    kMisuse,   // a stage published where it had not said so
  };
  PipelineError(const std::string& message, Reason reason, std::int32_t code,
                const std::array<std::uint64_t, 2>& values)
      : Error{Kind::kTask, message}, reason_{reason}, code_{code}, values_{values} {}

  Reason reason() const noexcept { return reason_; }
  /// Of fail().
  std::int32_t code() const noexcept { return code_; }
  const std::array<std::uint64_t, 2>& values() const noexcept { return values_; }

 private:
  Reason reason_;
  std::int32_t code_;
  std::array<std::uint64_t, 2> values_;
};

}  // namespace esker::pipeline
