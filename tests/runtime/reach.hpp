// What a job's launcher knows of the heaps that its PEs reach.
#pragma once

#include <cstdlib>
#include <optional>

namespace esker::testing {

/// How many heaps this PE reaches, its own among them (ESKER_TEST_REACH); nothing where the system decides.
inline std::optional<long> expected_reach() {
  const char* const text = std::getenv("ESKER_TEST_REACH");
  if (text == nullptr) return std::nullopt;
  return std::atol(text);
}

}  // namespace esker::testing
