// nlohmann::json, for sources that a device compiler compiles too.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>

// clang 15 crashes when it meets the constraints of this pair for the first time while it works out, for
// HIP, which side the implicit members of a map node are for. Having met them before, it does not.
static_assert(!std::is_copy_assignable_v<std::pair<const std::string, nlohmann::json> >);

namespace harness {

/// The text of a report, with the end of its last line. What is no UTF-8 in users' names is replaced.
template <class Json>
std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace harness
