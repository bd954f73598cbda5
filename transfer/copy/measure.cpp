// Samples each path of copies at the points of a CopyProfile.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include <esker/error.hpp>
#include <esker/transfer/copy/copy_batch.hpp>
#include <esker/transfer/copy/copy_profile.hpp>

namespace esker::transfer {

namespace {

constexpr std::size_t kShort = std::size_t{1}
                               << 20;  // in all: microseconds, which others of the machine blur
constexpr std::size_t kGap = 256;      // between two copies: adjacent ones would be one

constexpr CopyPath kPaths[] = {CopyPath::kSeparate, CopyPath::kBatchCall, CopyPath::kKernel};
static_assert(std::size(kPaths) == kMeasuredPaths);

/// All points are measured so often, one after the other, and the least median of each counts: a core is
/// slower for seconds, when others work on it, and the profile is of one that is not.
constexpr std::uint32_t kRounds = 4;

using PathTimes = std::array<CopyTime, std::size(kPaths)>;

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Medians of the paths in turns: a kernel that follows itself is up to 7 us faster than one that follows
/// copies, as in a program.
PathTimes times_of(Copier& copier, const std::vector<Copy>& copies, const Stream& stream,
                   std::uint32_t repeats) {
  using Clock = std::chrono::steady_clock;
  std::array<std::vector<double>, std::size(kPaths)> us, host_us;
  for (std::uint32_t r = 0; r <= repeats; ++r) {
    for (std::size_t p = 0; p < std::size(kPaths); ++p) {
      const auto began = Clock::now();
      const double on_host = copier.copy_by(kPaths[p], copies, stream);
      stream.synchronize();
      const std::chrono::duration<double, std::micro> all = Clock::now() - began;
      if (r == 0) continue;  // a warm-up
      host_us[p].push_back(on_host);
      us[p].push_back(all.count());
    }
  }
  PathTimes medians{};
  for (std::size_t p = 0; p < std::size(kPaths); ++p) medians[p] = {median(us[p]), median(host_us[p])};
  return medians;
}

}  // namespace

CopyProfile measure_copies(const Device& device, const CopyMeasurement& how) {
  constexpr std::size_t kLeastBytes = std::size_t{64} << 10;
  if (how.bytes < kLeastBytes)
    throw Error(Error::Kind::kTransfer,
                fmt::format("measure_copies: {} bytes on each side: at least {}", how.bytes, kLeastBytes));
  CopyProfile profile;
  Copier copier(device, profile);
  const Stream stream = device.stream();
  const Allocation what{.what = "measuring copies"};
  const auto host = device.pinned<std::byte>(how.bytes, what);
  const DeviceArray<std::byte> here = device.memory<std::byte>(how.bytes, what);
  const DeviceArray<std::byte> there = device.memory<std::byte>(how.bytes, what);
  constexpr std::uint32_t kPoints = CopyProfile::kCounts * CopyProfile::kSizes;
  PathTimes none{};
  none.fill({std::numeric_limits<double>::max(), std::numeric_limits<double>::max()});
  std::vector<PathTimes> times(std::size_t{kDirections} * kPoints, none);
  const auto point = [](Direction direction, std::uint32_t count, std::uint32_t size) {
    return static_cast<std::size_t>(direction) * kPoints + count * CopyProfile::kSizes + size;
  };
  const auto is_too_large = [&](std::uint32_t count, std::uint32_t size) {
    return CopyProfile::count_at(count) * (CopyProfile::bytes_at(size) + kGap) > how.bytes;
  };
  constexpr Direction kAll[] = {Direction::kToDevice, Direction::kToHost, Direction::kWithin};
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    for (const Direction direction : kAll) {
      std::byte* const to = direction == Direction::kToHost ? host.data() : here.data();
      const std::byte* const from = direction == Direction::kToDevice ? host.data() : there.data();
      for (std::uint32_t c = 0; c < CopyProfile::kCounts; ++c) {
        for (std::uint32_t s = 0; s < CopyProfile::kSizes; ++s) {
          if (is_too_large(c, s)) continue;
          const std::size_t n = CopyProfile::count_at(c), bytes = CopyProfile::bytes_at(s);
          std::vector<Copy> copies;
          for (std::size_t i = 0; i < n; ++i)
            copies.push_back({to + i * (bytes + kGap), from + i * (bytes + kGap), bytes});
          const std::uint32_t repeats = n * bytes <= kShort ? 5 * how.repeats : how.repeats;
          const PathTimes now =
              times_of(copier, copies, stream, std::max(1u, (repeats + kRounds - 1) / kRounds));
          PathTimes& least = times[point(direction, c, s)];
          for (std::size_t p = 0; p < std::size(kPaths); ++p)
            least[p] = {std::min(least[p].us, now[p].us), std::min(least[p].host_us, now[p].host_us)};
        }
      }
    }
  }
  for (const Direction direction : kAll) {
    for (std::uint32_t c = 0; c < CopyProfile::kCounts; ++c) {
      for (std::uint32_t s = 0; s < CopyProfile::kSizes; ++s) {
        for (std::size_t p = 0; p < std::size(kPaths); ++p) {
          const CopyPath path = kPaths[p];
          if (!is_too_large(c, s)) {
            profile.set(direction, path, c, s, times[point(direction, c, s)][p]);
            continue;
          }
          // By the size before, or on the line through the two numbers before.
          profile.set(
              direction, path, c, s,
              c < 2 ? lerp({}, profile.at(direction, path, c, s - 1), 2)
                    : lerp(profile.at(direction, path, c - 2, s), profile.at(direction, path, c - 1, s), 3));
        }
      }
    }
  }
  return profile;
}

}  // namespace esker::transfer
