// Profiles as JSON, and the file of this machine. Other parts of that file are left as they are.
#include <esker/transfer/batch/link_profile.hpp>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include <unistd.h>

#include <esker/error.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace esker::transfer {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const LinkProfile& profile) {
  Json json{{"machine", profile.machine}, {"links", Json::array()}};
  for (const LinkProfile::Entry& entry : profile.links) {
    const LinkRate& rate = entry.rate;
    json["links"].push_back(
        {{"from", entry.from},
         {"to", entry.to},
         {"bytes_per_s", std::isfinite(rate.bytes_per_s) ? Json(rate.bytes_per_s) : Json(nullptr)},
         {"both_bytes_per_s", rate.both_bytes_per_s},
         {"startup_s", rate.startup_s},
         {"further_s", rate.further_s}});
  }
  return json;
}

LinkProfile profile_of(const Json& json) {
  LinkProfile profile;
  profile.machine = json.at("machine").get<std::string>();
  for (const Json& link : json.at("links")) {
    LinkProfile::Entry entry{link.at("from").get<std::string>(), link.at("to").get<std::string>(), {}};
    if (!link.at("bytes_per_s").is_null()) entry.rate.bytes_per_s = link.at("bytes_per_s").get<double>();
    entry.rate.both_bytes_per_s = link.value("both_bytes_per_s", 0.0);
    entry.rate.startup_s = link.value("startup_s", 0.0);
    entry.rate.further_s = link.value("further_s", 0.0);
    profile.links.push_back(std::move(entry));
  }
  return profile;
}

std::string file_of_machine() {
  if (const char* const path = std::getenv("ESKER_MACHINE_FILE"); path != nullptr) return path;
  if (const char* const caches = std::getenv("XDG_CACHE_HOME"); caches != nullptr && *caches != '\0')
    return std::string(caches) + "/esker/machine.json";
  if (const char* const home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::string(home) + "/.cache/esker/machine.json";
  return {};
}

/// An empty object: there is no file.
Json read(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Json::object();
  Json all = Json::parse(file, nullptr, false);
  if (!all.is_object())
    throw Error(Error::Kind::kConfiguration,
                fmt::format("transfer: '{}' is no JSON object: delete it, or measure again", path));
  return all;
}

}  // namespace

std::string to_json(const LinkProfile& profile) { return json_of(profile).dump(2); }

LinkProfile profile_from_json(const std::string& text, const std::string& where) {
  try {
    return profile_of(Json::parse(text));
  } catch (const std::exception& error) {
    throw Error(Error::Kind::kTransfer, fmt::format("profile of links in {}: {}", where, error.what()));
  }
}

Topology calibrated(Topology topology, const LinkProfile& profile) {
  if (topology.name() != profile.machine) {
    throw Error(
        Error::Kind::kTransfer,
        fmt::format("the profile was measured on '{}', and this machine is '{}': measure its links here "
                    "(esker-topology --measure)",
                    profile.machine, topology.name()));
  }
  for (const LinkProfile::Entry& entry : profile.links) {
    const std::uint32_t from = topology.find(entry.from), to = topology.find(entry.to);
    std::uint32_t link = 0;
    const auto& links = topology.links();
    while (link < links.size() && (links[link].from != from || links[link].to != to)) ++link;
    if (link == links.size()) {
      throw Error(
          Error::Kind::kTransfer,
          fmt::format("the profile of '{}' has a link {} -> {}, which its topology lacks: measure again",
                      profile.machine, entry.from, entry.to));
    }
    topology.set_rate(link, entry.rate);
  }
  return topology;
}

void keep_profile(const LinkProfile& profile) {
  const std::string path = file_of_machine();
  const auto refuse = [&](const std::string& why) {
    throw Error(Error::Kind::kConfiguration, fmt::format("transfer: cannot write '{}': {}", path, why));
  };
  if (path.empty()) refuse("neither ESKER_MACHINE_FILE nor HOME is set");
  Json all = read(path);
  if (!all["transfer"].is_object()) all["transfer"] = Json::object();
  Json& links = all["transfer"]["links"];
  if (!links.is_object()) links = Json::object();
  links[profile.machine] = json_of(profile);
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

LinkProfile kept_profile(const std::string& machine) {
  const std::string path = file_of_machine();
  const Json all = path.empty() ? Json::object() : read(path);
  const Json::json_pointer at("/transfer/links");
  const Json links = all.contains(at) ? all.at(at) : Json::object();
  if (!links.contains(machine)) {
    std::string known;
    for (const auto& [name, ignored] : links.items()) known += (known.empty() ? "'" : ", '") + name + "'";
    throw Error(Error::Kind::kTransfer,
                fmt::format("no links of '{}' are kept in '{}', which has {}: measure them (esker-topology "
                            "--measure)",
                            machine, path, known.empty() ? "none" : known));
  }
  try {
    return profile_of(links.at(machine));
  } catch (const Json::exception& error) {
    throw Error(Error::Kind::kConfiguration,
                fmt::format("transfer: in '{}' the links of '{}' cannot be read: {}: measure again", path,
                            machine, error.what()));
  }
}

}  // namespace esker::transfer
