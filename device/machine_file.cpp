// {MODULE: {WHAT: {WHOM: ...}}}
#include <esker/device/machine_file.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include <esker/error.hpp>

namespace esker {

namespace {

/// An empty object: there is no file, or it cannot be read, and `why` says so.
nlohmann::json read(const std::string& path, std::error_code* why = nullptr) {
  errno = 0;
  std::ifstream file(path);
  if (!file) {
    if (why != nullptr && errno != ENOENT) why->assign(errno, std::generic_category());
    return nlohmann::json::object();
  }
  if (std::filesystem::is_directory(path))
    throw Error(Error::Kind::kConfiguration, fmt::format("'{}' is a folder, not a file", path));
  nlohmann::json all = nlohmann::json::parse(file, nullptr, false);
  if (!all.is_object()) {
    throw Error(
        Error::Kind::kConfiguration,
        fmt::format("'{}' is no JSON object: delete it, or name another file (ESKER_MACHINE_FILE)", path));
  }
  return all;
}

nlohmann::json& object_in(nlohmann::json& all, const std::string& name) {
  nlohmann::json& part = all[name];
  if (!part.is_object()) part = nlohmann::json::object();
  return part;
}

}  // namespace

std::string machine_file() {
  if (const char* const path = std::getenv("ESKER_MACHINE_FILE"); path != nullptr) return path;
  if (const char* const caches = std::getenv("XDG_CACHE_HOME"); caches != nullptr && *caches != '\0')
    return std::string(caches) + "/esker/machine.json";
  if (const char* const home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::string(home) + "/.cache/esker/machine.json";
  return {};
}

std::string kind_of(const DeviceProperties& device) {
  return fmt::format("{}: {}", to_string(device.backend), device.model);
}

std::optional<std::string> read_machine(const std::string& module, const std::string& what,
                                        const std::string& whom) {
  const std::string path = machine_file();
  if (path.empty()) return std::nullopt;
  const nlohmann::json all = read(path);
  const auto at = nlohmann::json::json_pointer() / module / what / whom;
  if (!all.contains(at)) return std::nullopt;
  return all.at(at).dump();
}

std::vector<std::string> known_to_machine(const std::string& module, const std::string& what) {
  std::vector<std::string> known;
  const std::string path = machine_file();
  if (path.empty()) return known;
  const nlohmann::json all = read(path);
  const auto at = nlohmann::json::json_pointer() / module / what;
  if (!all.contains(at) || !all.at(at).is_object()) return known;
  for (const auto& [whom, ignored] : all.at(at).items()) known.push_back(whom);
  return known;
}

void keep_machine(const std::string& module, const std::string& what, const std::string& whom,
                  const std::string& json) {
  const std::string path = machine_file();
  const auto refuse = [&](const std::string& why) {
    throw Error(Error::Kind::kConfiguration, fmt::format("cannot write '{}': {}", path, why));
  };
  if (path.empty()) refuse("neither ESKER_MACHINE_FILE nor HOME is set");
  std::error_code error;
  nlohmann::json all = read(path, &error);
  if (error) refuse(error.message());  // what others have kept there would be lost
  object_in(object_in(all, module), what)[whom] = nlohmann::json::parse(json);
  const std::filesystem::path file(path), written(path + "." + std::to_string(getpid()) + ".new");
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
  if (error) refuse(error.message());
  std::ofstream out(written);
  out << all.dump(2) << '\n';
  out.close();
  if (!out) error.assign(errno, std::generic_category());
  if (!error) std::filesystem::rename(written, file, error);
  if (!error) return;
  std::error_code ignored;
  std::filesystem::remove(written, ignored);
  refuse(error.message());
}

}  // namespace esker
