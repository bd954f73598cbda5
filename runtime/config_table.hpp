// The one table of settings: it drives parsing, validation, help, esker-info and JSON. Private.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <esker/config.hpp>

namespace esker::detail {

/// One setting.
struct Setting {
  std::string name;
  std::string unit;   // "" where the text says it
  std::string legal;  // values or range, in words
  std::string help;
  /// Throws std::invalid_argument with words that follow the value; the field is then untouched.
  std::function<void(Config&, std::string_view)> assign;
  /// assign(c, text(c)) changes nothing, and is an error only if the field's value is illegal.
  std::function<std::string(const Config&)> text;
  std::function<nlohmann::json(const Config&)> json;
};

const std::vector<Setting>& settings();
/// By name, in which '-' counts as '_'; null if there is none.
const Setting* find_setting(std::string_view name);
std::vector<std::string> setting_names();

/// "package_bytes" as "package-bytes", and as "ESKER_PACKAGE_BYTES".
std::string dashed(std::string_view name);
std::string variable(std::string_view name);

}  // namespace esker::detail
