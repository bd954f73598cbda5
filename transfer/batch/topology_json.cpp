// A topology as JSON, and from it. A bandwidth that nobody knows is null.
#include <esker/transfer/batch/topology.hpp>

#include <initializer_list>

#include <esker/error.hpp>
#include <esker/transfer/batch/link_rate_json.hpp>
#include <esker/transfer/json_text.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace esker::transfer {

namespace {

using Json = nlohmann::ordered_json;

template <class Enum>
Enum one_of(const std::string& text, std::initializer_list<Enum> values) {
  std::string legal;
  for (const Enum value : values) {
    if (text == to_string(value)) return value;
    legal += (legal.empty() ? "" : ", ") + std::string(to_string(value));
  }
  throw Error(Error::Kind::kTransfer, fmt::format("'{}' is none of: {}", text, legal));
}

}  // namespace

std::string Topology::to_json() const {
  Json json{{"name", name_}, {"nodes", Json::array()}, {"links", Json::array()}};
  for (const Node& node : nodes_) {
    Json one{{"name", node.name}, {"kind", to_string(node.kind)}};
    if (node.kind == Kind::kDevice) one["engines"] = to_string(node.engines);
    json["nodes"].push_back(one);
  }
  for (std::size_t i = 0; i < links_.size(); i += 2) {
    json["links"].push_back({{"from", nodes_[links_[i].from].name},
                             {"to", nodes_[links_[i].to].name},
                             {"there", json_of(links_[i].rate)},
                             {"back", json_of(links_[i + 1].rate)}});
  }
  return detail::json_text(json);
}

Topology Topology::from_json(const std::string& text, const std::string& where) {
  try {
    const Json json = Json::parse(text);
    Topology topology(json.at("name").get<std::string>());
    for (const Json& node : json.at("nodes")) {
      topology.add(node.at("name").get<std::string>(),
                   one_of(node.at("kind").get<std::string>(),
                          {Kind::kMemory, Kind::kProcessor, Kind::kHub, Kind::kSwitch, Kind::kDevice}),
                   one_of(node.value("engines", std::string(to_string(Engines::kADirection))),
                          {Engines::kCaller, Engines::kOne, Engines::kADirection}));
    }
    for (const Json& link : json.at("links")) {
      topology.connect(topology.find(link.at("from").get<std::string>()),
                       topology.find(link.at("to").get<std::string>()), rate_of(link.at("there")),
                       rate_of(link.at("back")));
    }
    return topology;
  } catch (const std::exception& error) {
    throw Error(Error::Kind::kTransfer, fmt::format("topology in {}: {}", where, error.what()));
  }
}

}  // namespace esker::transfer
