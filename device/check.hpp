// ESKER_CHECK: the one check macro. For sources of the library; public headers call misuse() themselves.
#pragma once

#include <string>

#include <fmt/format.h>

#include <esker/device/error.hpp>

namespace esker::detail {

[[noreturn]] ESKER_API void check_failed(const char* condition, const char* file, int line,
                                         const std::string& message);

}  // namespace esker::detail

/// Aborts through misuse() unless `condition` holds. The rest is a format string and its values, which
/// are evaluated only on failure; the condition is evaluated once, in every build type.
#define ESKER_CHECK(condition, ...)                                                              \
  do {                                                                                           \
    if (!static_cast<bool>(condition)) [[unlikely]] {                                            \
      ::esker::detail::check_failed(#condition, __FILE__, __LINE__, ::fmt::format(__VA_ARGS__)); \
    }                                                                                            \
  } while (false)
