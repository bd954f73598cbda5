// A grid of times, interpolated, and its place in the machine file.
#include <esker/transfer/copy/copy_profile.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include <esker/device/machine_file.hpp>
#include <esker/error.hpp>

namespace esker::transfer {

namespace {

constexpr Direction kAllDirections[] = {Direction::kToDevice, Direction::kToHost, Direction::kWithin};
constexpr CopyPath kAllPaths[] = {CopyPath::kSeparate, CopyPath::kBatchCall, CopyPath::kKernel};
constexpr const char *kModule = "transfer", *kName = "copies";

/// Microseconds of a set and of each copy, bytes a microsecond, and of the host.
struct Line {
  double start, each, rate;
  double host_start, host_each;
};
/// An H100 on PCIe 5.
Line as_built(Direction direction, CopyPath path) {
  const double engine = direction == Direction::kWithin ? 1.2e6 : 53e3;
  switch (path) {
    case CopyPath::kSeparate:
      return {8, 2.7, engine, 1, 1.5};
    case CopyPath::kBatchCall:
      return direction == Direction::kToDevice ? Line{9, 2, engine, 3, 1.1} : Line{9, 1, engine, 2, 0.4};
    default:
      return {14, 0.03, direction == Direction::kWithin ? 1e6 : 50e3, 5, 0.02};
  }
}

/// The cell of a grid that x is in, and where: beyond the last cell it is that one's.
template <class At>
std::pair<std::uint32_t, double> cell_of(double x, std::uint32_t n, const At& at) {
  std::uint32_t i = 0;
  while (i + 2 < n && x >= static_cast<double>(at(i + 1))) ++i;
  const auto low = static_cast<double>(at(i)), high = static_cast<double>(at(i + 1));
  return {i, (x - low) / (high - low)};
}

}  // namespace

const char* to_string(CopyPath path) noexcept {
  switch (path) {
    case CopyPath::kSeparate:
      return "separate";
    case CopyPath::kBatchCall:
      return "batch call";
    case CopyPath::kKernel:
      return "kernel";
    case CopyPath::kGraph:
      return "graph";
  }
  return "unknown";
}
const char* to_string(Direction direction) noexcept {
  switch (direction) {
    case Direction::kToDevice:
      return "to the device";
    case Direction::kToHost:
      return "to the host";
    case Direction::kWithin:
      return "within the device";
  }
  return "unknown";
}

CopyProfile::CopyProfile() : times_(std::size_t{kDirections} * kMeasuredPaths * kCounts * kSizes) {
  for (const Direction direction : kAllDirections) {
    for (const CopyPath path : kAllPaths) {
      const Line line = as_built(direction, path);
      for (std::uint32_t c = 0; c < kCounts; ++c) {
        for (std::uint32_t s = 0; s < kSizes; ++s) {
          const auto n = static_cast<double>(count_at(c)), bytes = static_cast<double>(bytes_at(s));
          // What a call costs is hidden behind the copy before it.
          set(direction, path, c, s,
              {line.start + n * std::max(line.each, bytes / line.rate),
               line.host_start + n * line.host_each});
        }
      }
    }
  }
}

CopyTime CopyProfile::time(Direction direction, CopyPath path, double n, double bytes) const {
  const auto [c, x] = cell_of(n, kCounts, count_at);
  const auto [s, y] = cell_of(bytes, kSizes, bytes_at);
  const CopyTime low = lerp(at(direction, path, c, s), at(direction, path, c + 1, s), x);
  const CopyTime high = lerp(at(direction, path, c, s + 1), at(direction, path, c + 1, s + 1), x);
  // Where larger copies take less, the driver goes another way from there on, and not before. Below the first
  // size a line may go below its first point, where a startup keeps it.
  const CopyTime between = high.us < low.us && y < 1 ? low : lerp(low, high, std::max(y, 0.0));
  return {std::max(between.us, 0.0), std::max(between.host_us, 0.0)};
}

std::string CopyProfile::json() const {
  nlohmann::json all;
  for (const Direction direction : kAllDirections) {
    for (const CopyPath path : kAllPaths) {
      nlohmann::json& tables = all[to_string(direction)][to_string(path)];
      for (std::uint32_t c = 0; c < kCounts; ++c) {
        std::vector<double> us, host_us;
        for (std::uint32_t s = 0; s < kSizes; ++s) {
          us.push_back(at(direction, path, c, s).us);
          host_us.push_back(at(direction, path, c, s).host_us);
        }
        tables["us"].push_back(us);
        tables["host_us"].push_back(host_us);
      }
    }
  }
  return all.dump();
}

CopyProfile CopyProfile::of_machine(const Device& device) {
  CopyProfile profile;
  const std::optional<std::string> kept = read_machine(kModule, kName, kind_of(device.properties()));
  if (!kept.has_value()) return profile;
  try {
    const nlohmann::json all = nlohmann::json::parse(*kept);
    for (const Direction direction : kAllDirections) {
      for (const CopyPath path : kAllPaths) {
        const nlohmann::json& tables = all.at(to_string(direction)).at(to_string(path));
        const nlohmann::json &us = tables.at("us"), &host_us = tables.at("host_us");
        for (std::uint32_t c = 0; c < kCounts; ++c) {
          for (std::uint32_t s = 0; s < kSizes; ++s)
            profile.set(direction, path, c, s,
                        {us.at(c).at(s).get<double>(), host_us.at(c).at(s).get<double>()});
        }
      }
    }
  } catch (const nlohmann::json::exception& e) {
    throw Error(Error::Kind::kConfiguration,
                fmt::format("transfer: in '{}' /{}/{} is not what measure_copies() keeps ({}): measure again",
                            machine_file(), kModule, kName, e.what()));
  }
  return profile;
}

void CopyProfile::keep(const Device& device) const {
  keep_machine(kModule, kName, kind_of(device.properties()), json());
}

}  // namespace esker::transfer
