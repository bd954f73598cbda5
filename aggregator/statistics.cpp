// Stage statistics as JSON.
#include <esker/aggregator/statistics.hpp>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace esker {
namespace {

/// `end(bucket)` is the upper end of a bucket in the unit that is printed, `max` the maximum in it.
template <std::size_t Buckets>
nlohmann::ordered_json describe(const Histogram<Buckets>& histogram, const char* unit, double max, auto end) {
  nlohmann::ordered_json json{{"unit", unit}, {"count", histogram.count()}};
  const auto quantile = [&](double q) { return std::min(end(histogram.bucket_at(q)), max); };
  if (histogram.count() > 0) {
    json["p50"] = quantile(0.5);
    json["p99"] = quantile(0.99);
    json["max"] = max;
  }
  json["buckets"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < Buckets; ++i) {
    if (histogram.counts[i] != 0) {
      json["buckets"].push_back({{"up_to", end(i)}, {"count", histogram.counts[i]}});
    }
  }
  return json;
}

nlohmann::ordered_json describe_duration(const DurationHistogram& histogram) {
  return describe(histogram, "us", static_cast<double>(histogram.max) / 1e3,
                  [](std::size_t i) { return static_cast<double>((std::uint64_t{1} << i) - 1) / 1e3; });
}

}  // namespace

std::string to_json(const StageStatistics& stages) {
  const nlohmann::ordered_json json{
      {"package_wait", describe_duration(stages.package_wait)},
      {"gather", describe_duration(stages.gather)},
      {"send", describe_duration(stages.send)},
      {"apply", describe_duration(stages.apply)},
      {"fill",
       describe(stages.fill, "fraction", static_cast<double>(stages.fill.max) / 1e6, [&](std::size_t i) {
         return static_cast<double>(i + 1) / static_cast<double>(stages.fill.counts.size());
       })}};
  return json.dump(2);
}

}  // namespace esker
