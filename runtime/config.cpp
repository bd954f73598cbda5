// Settings from their sources, weakest first, and settings as text.
#include <esker/config.hpp>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <esker/device/error.hpp>
#include <esker/runtime/config_sources.hpp>
#include <esker/runtime/config_table.hpp>
#include <esker/runtime/near_match.hpp>

namespace esker {
namespace {

using detail::Setting;

[[noreturn]] void reject(const std::string& message) { throw Error(Error::Kind::kConfiguration, message); }

void assign(Config& config, const Setting& setting, const std::string& value, const std::string& where) {
  try {
    setting.assign(config, value);
  } catch (const std::invalid_argument& e) {
    reject(
        fmt::format("{} from {}: \"{}\" {}; legal: {}", setting.name, where, value, e.what(), setting.legal));
  }
  config.origins[setting.name] = {setting.text(config), where};
}

/// For a source that must name a setting; `prefix` is what its names start with there.
const Setting& known(const std::string& name, const std::string& where, std::string_view prefix = "") {
  if (const Setting* setting = detail::find_setting(name)) return *setting;
  reject(fmt::format("{}: there is no setting {}{}{}", where, prefix, name,
                     did_you_mean(name, detail::setting_names(), prefix)));
}

void apply_environment(Config& config, const std::map<std::string, std::string>& environment) {
  constexpr std::string_view kPrefix = "ESKER_";
  constexpr std::string_view kUcxPrefix = "ESKER_UCX_";  // of variables that UCX reads
  // Beside settings: the file of settings, and the one of measurements (device/machine_file.hpp).
  std::vector<std::string> names = {"CONFIG", "MACHINE_FILE"};
  for (const Setting& setting : detail::settings()) {
    const std::string name = detail::variable(setting.name);
    names.push_back(name.substr(kPrefix.size()));
    if (const auto it = environment.find(name); it != environment.end()) {
      assign(config, setting, it->second, name);
    }
  }
  for (const auto& [variable, value] : environment) {
    if (!variable.starts_with(kPrefix) || variable.starts_with(kUcxPrefix)) continue;
    const std::string name = variable.substr(kPrefix.size());
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      config.warnings.push_back(fmt::format("{} is ignored: there is no such setting{}", variable,
                                            did_you_mean(name, names, kPrefix)));
    }
  }
}

std::string origin(const Config& config, const Setting& setting) {
  const std::string value = setting.text(config);
  if (const auto it = config.origins.find(setting.name); it != config.origins.end()) {
    return it->second.value == value ? it->second.where : "program";
  }
  return value == setting.text(Config{}) ? "default" : "program";
}

}  // namespace

Config Config::from_environment() { return load_config({"", detail::process_environment(), {}}); }

Config load_config(const ConfigSources& sources) {
  Config config;
  std::string file = sources.file;
  if (const auto it = sources.environment.find("ESKER_CONFIG");
      file.empty() && it != sources.environment.end()) {
    file = it->second;
  }
  if (!file.empty()) {
    for (const auto& line : detail::read_config_file(file)) {
      assign(config, known(line.name, line.where), line.value, line.where);
    }
  }
  apply_environment(config, sources.environment);
  for (const auto& [name, value] : sources.arguments) {
    const Setting* const setting = &known(name, "command line");  // g++ 13: -Wdangling-reference
    assign(config, *setting, value, fmt::format("command line (--{})", detail::dashed(setting->name)));
  }
  return config;
}

void validate(const Config& config) {
  Config copy = config;
  for (const Setting& setting : detail::settings()) {
    assign(copy, setting, setting.text(config), origin(config, setting));
  }
}

std::vector<ConfigRow> describe(const Config& config) {
  std::vector<ConfigRow> rows;
  for (const Setting& setting : detail::settings()) {
    rows.push_back({setting.name, setting.text(config), setting.unit, origin(config, setting), setting.legal,
                    setting.help});
  }
  return rows;
}

std::string to_json(const Config& config) {
  nlohmann::ordered_json object;
  for (const Setting& setting : detail::settings()) object[setting.name] = setting.json(config);
  return object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);  // a path may be no UTF-8
}

namespace {

/// The program may have an option of that name, so this is no error; short names are near to too much.
std::optional<std::string> warning_for(const std::string& name) {
  constexpr std::size_t kShort = 6;
  if (name.size() < kShort) return std::nullopt;
  std::vector<std::string> candidates = {"config"};
  for (const std::string& setting : detail::setting_names()) {
    // A word that a setting begins with is a word of its own: --package.
    if (setting.size() <= name.size() + 1 || !detail::dashed(setting).starts_with(detail::dashed(name)))
      candidates.push_back(detail::dashed(setting));
  }
  const std::string near = did_you_mean(detail::dashed(name), candidates, "--");
  if (near.empty()) return std::nullopt;
  return fmt::format("--{} is no option of Esker's and is left to the program{}", name, near);
}

}  // namespace

Config config_from_arguments(int& argc, char** argv) {
  ConfigSources sources{"", detail::process_environment(), {}};
  std::vector<std::string> warnings;
  int kept = argc > 0 ? 1 : 0;
  bool ended = false;
  for (int i = kept; i < argc; ++i) {
    const std::string_view argument = argv[i];
    ended = ended || argument == "--";
    const auto equals = argument.find('=');
    const std::string name(argument.substr(0, equals).substr(argument.starts_with("--") ? 2 : 0));
    const bool ours =
        !ended && argument.starts_with("--") && (name == "config" || detail::find_setting(name) != nullptr);
    if (!ours) {
      if (!ended && argument.starts_with("--")) {
        if (auto warning = warning_for(name)) warnings.push_back(std::move(*warning));
      }
      argv[kept++] = argv[i];
      continue;
    }
    std::string value;
    if (equals != std::string_view::npos) {
      value = argument.substr(equals + 1);
    } else if (++i < argc) {
      value = argv[i];
    } else {
      reject(fmt::format("command line: --{} lacks a value", name));
    }
    if (name == "config") {
      sources.file = value;
    } else {
      sources.arguments.emplace_back(name, value);
    }
  }
  // As main's contract has it; not on entry to the loop, since an argv of our caller's may lack the null.
  if (kept < argc) argv[kept] = nullptr;
  argc = kept;
  Config config = load_config(sources);
  config.warnings.insert(config.warnings.end(), warnings.begin(), warnings.end());
  return config;
}

}  // namespace esker
