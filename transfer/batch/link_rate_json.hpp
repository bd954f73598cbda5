// The rate of a link as JSON, in topologies and in profiles.
#pragma once

#include <cmath>

#include <esker/transfer/batch/topology.hpp>

#include <nlohmann/json.hpp>

namespace esker::transfer {

/// A bandwidth that nobody knows is null; what is 0 is left out.
inline nlohmann::ordered_json json_of(const LinkRate& rate) {
  nlohmann::ordered_json json;
  json["bytes_per_s"] = nullptr;
  if (std::isfinite(rate.bytes_per_s)) json["bytes_per_s"] = rate.bytes_per_s;
  if (rate.both_bytes_per_s > 0) json["both_bytes_per_s"] = rate.both_bytes_per_s;
  if (rate.startup_s > 0) json["startup_s"] = rate.startup_s;
  if (rate.further_s > 0) json["further_s"] = rate.further_s;
  return json;
}

/// Throws nlohmann::json::exception.
inline LinkRate rate_of(const nlohmann::ordered_json& json) {
  LinkRate rate;
  if (!json.at("bytes_per_s").is_null()) rate.bytes_per_s = json.at("bytes_per_s").get<double>();
  rate.both_bytes_per_s = json.value("both_bytes_per_s", 0.0);
  rate.startup_s = json.value("startup_s", 0.0);
  rate.further_s = json.value("further_s", 0.0);
  return rate;
}

}  // namespace esker::transfer
