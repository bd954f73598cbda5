// JSON as text.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace esker::transfer::detail {

/// Names of users may be no UTF-8: what is none is replaced. `indent` -1: on one line.
inline std::string json_text(const nlohmann::json& json, int indent = 2) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace esker::transfer::detail
