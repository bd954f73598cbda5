// {"pipeline": {"batched_from": {DEVICE: BYTES}}}: other parts of the file are left as they are.
#include <esker/pipeline/crossing.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include <esker/error.hpp>

namespace esker::pipeline {

namespace {

std::string kind_of(const Device& device) {
  return fmt::format("{}: {}", to_string(device.backend()), device.properties().model);
}

/// An empty object: there is no file.
nlohmann::json read(const std::string& path) {
  std::ifstream file(path);
  if (!file) return nlohmann::json::object();
  nlohmann::json all = nlohmann::json::parse(file, nullptr, false);
  if (!all.is_object())
    throw Error(Error::Kind::kConfiguration,
                fmt::format("pipeline: '{}' is no JSON object: delete it, or measure again", path));
  return all;
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

std::uint64_t batched_from(const Device& device) {
  constexpr std::uint64_t kOtherwise = std::uint64_t{1} << 20;
  const std::string path = machine_file();
  if (path.empty()) return kOtherwise;
  const nlohmann::json all = read(path);
  const nlohmann::json::json_pointer at =
      nlohmann::json::json_pointer("/pipeline/batched_from") / kind_of(device);
  if (!all.contains(at)) return kOtherwise;
  const nlohmann::json& bytes = all.at(at);
  if (!bytes.is_number_unsigned())
    throw Error(Error::Kind::kConfiguration,
                fmt::format("pipeline: in '{}' {} is {}, not a number of bytes: measure again", path,
                            at.to_string(), bytes.dump()));
  return bytes.get<std::uint64_t>();
}

void keep_batched_from(const Device& device, std::uint64_t bytes) {
  const std::string path = machine_file();
  const auto refuse = [&](const std::string& why) {
    throw Error(Error::Kind::kConfiguration, fmt::format("pipeline: cannot write '{}': {}", path, why));
  };
  if (path.empty()) refuse("neither ESKER_MACHINE_FILE nor HOME is set");
  nlohmann::json all = read(path);
  nlohmann::json& part = all["pipeline"];
  if (!part.is_object()) part = nlohmann::json::object();
  if (!part["batched_from"].is_object()) part["batched_from"] = nlohmann::json::object();
  part["batched_from"][kind_of(device)] = bytes;
  // Another process reads the old file or the new one.
  std::error_code error;
  const std::filesystem::path file(path), written(path + "." + std::to_string(getpid()) + ".new");
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
  if (error) refuse(error.message());
  std::ofstream out(written);
  out << all.dump(2) << '\n';
  out.close();
  if (!out) refuse("it cannot be created");
  std::filesystem::rename(written, file, error);
  if (error) refuse(error.message());
}

}  // namespace esker::pipeline
