// Where tests take many times as long.
#pragma once

namespace esker::testing {

/// Under sanitizers, and where a GPU is threads of the host: there loops of tests take fewer of the same
/// kind.
#if defined(ESKER_TEST_SANITIZED) || defined(ESKER_TEST_SIMULATED)
inline constexpr bool kIsSlow = true;
#else
inline constexpr bool kIsSlow = false;
#endif

}  // namespace esker::testing
