// Profiles as JSON, and the file of this machine. Other parts of that file are left as they are.
#include <esker/transfer/batch/link_profile.hpp>

#include <optional>
#include <utility>

#include <esker/device/machine_file.hpp>
#include <esker/error.hpp>
#include <esker/transfer/batch/link_rate_json.hpp>
#include <esker/transfer/json_text.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace esker::transfer {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const LinkProfile& profile) {
  Json json{{"machine", profile.machine}, {"links", Json::array()}};
  for (const LinkProfile::Entry& entry : profile.links) {
    Json link{{"from", entry.from}, {"to", entry.to}};
    link.update(json_of(entry.rate));
    json["links"].push_back(std::move(link));
  }
  return json;
}

LinkProfile profile_of(const Json& json) {
  LinkProfile profile;
  profile.machine = json.at("machine").get<std::string>();
  for (const Json& link : json.at("links")) {
    profile.links.push_back(
        {link.at("from").get<std::string>(), link.at("to").get<std::string>(), rate_of(link)});
  }
  return profile;
}

constexpr const char *kModule = "transfer", *kWhat = "links";

}  // namespace

std::string to_json(const LinkProfile& profile) { return detail::json_text(json_of(profile)); }

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
  for (std::uint32_t link = 0; link < topology.links().size(); ++link) {
    if (!topology.is_unknown(link)) continue;
    throw Error(
        Error::Kind::kTransfer,
        fmt::format("the profile of '{}' has no bandwidth of {}, which its topology has: measure again",
                    profile.machine, topology.link_name(link)));
  }
  return topology;
}

void keep_profile(const LinkProfile& profile) {
  keep_machine(kModule, kWhat, profile.machine, detail::json_text(json_of(profile), -1));
}

LinkProfile kept_profile(const std::string& machine) {
  const std::optional<std::string> kept = read_machine(kModule, kWhat, machine);
  if (!kept.has_value()) {
    std::string known;
    for (const std::string& name : known_to_machine(kModule, kWhat))
      known += (known.empty() ? "'" : ", '") + name + "'";
    throw Error(Error::Kind::kTransfer,
                fmt::format("no links of '{}' are kept in '{}', which has {}: measure them (esker-topology "
                            "--measure)",
                            machine, machine_file(), known.empty() ? "none" : known));
  }
  try {
    return profile_of(Json::parse(*kept));
  } catch (const Json::exception& error) {
    throw Error(Error::Kind::kConfiguration,
                fmt::format("transfer: in '{}' the links of '{}' cannot be read: {}: measure again",
                            machine_file(), machine, error.what()));
  }
}

}  // namespace esker::transfer
