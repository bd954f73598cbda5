// Times each path of copies at the points of a CopyProfile.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include <esker/transfer/copy/copy_batch.hpp>
#include <esker/transfer/copy/copy_profile.hpp>

namespace esker::transfer {

namespace {

constexpr std::size_t kShort = std::size_t{1}
                               << 20;  // in all: microseconds, which others of the machine blur
constexpr std::size_t kGap = 256;      // between two copies: adjacent ones would be one

constexpr CopyPath kPaths[] = {CopyPath::kSeparate, CopyPath::kBatchCall, CopyPath::kKernel};
static_assert(std::size(kPaths) == kMeasuredPaths);

/// Medians by path, the paths in turns: a kernel that follows itself is up to 7 us faster than one that
/// follows copies, as in a program.
std::array<double, std::size(kPaths)> medians_us(Copier& copier, const std::vector<Copy>& copies,
                                                 const Stream& stream, std::uint32_t repeats) {
  using Clock = std::chrono::steady_clock;
  std::array<std::vector<double>, std::size(kPaths)> us;
  for (std::uint32_t r = 0; r <= repeats; ++r) {
    for (std::size_t p = 0; p < std::size(kPaths); ++p) {
      const auto began = Clock::now();
      copier.copy_by(kPaths[p], copies, stream);
      stream.synchronize();
      const std::chrono::duration<double, std::micro> time = Clock::now() - began;
      if (r != 0) us[p].push_back(time.count());  // the first is a warm-up
    }
  }
  std::array<double, std::size(kPaths)> medians{};
  for (std::size_t p = 0; p < std::size(kPaths); ++p) {
    const auto middle = us[p].begin() + static_cast<std::ptrdiff_t>(us[p].size() / 2);
    std::nth_element(us[p].begin(), middle, us[p].end());
    medians[p] = *middle;
  }
  return medians;
}

}  // namespace

CopyProfile measure_copies(const Device& device, const CopyMeasurement& how) {
  CopyProfile profile;
  Copier copier(device, profile);
  const Stream stream = device.stream();
  const Allocation what{.what = "measuring copies"};
  const auto host = device.pinned<std::byte>(how.bytes, what);
  const DeviceArray<std::byte> here = device.memory<std::byte>(how.bytes, what);
  const DeviceArray<std::byte> there = device.memory<std::byte>(how.bytes, what);
  for (const Direction direction : {Direction::kToDevice, Direction::kToHost, Direction::kWithin}) {
    std::byte* const to = direction == Direction::kToHost ? host.data() : here.data();
    const std::byte* const from = direction == Direction::kToDevice ? host.data() : there.data();
    for (std::uint32_t c = 0; c < CopyProfile::kCounts; ++c) {
      for (std::uint32_t s = 0; s < CopyProfile::kSizes; ++s) {
        const std::size_t n = CopyProfile::count_at(c), bytes = CopyProfile::bytes_at(s);
        if (n * (bytes + kGap) > how.bytes) {
          for (const CopyPath path : kPaths) {
            // By the size before, or on the line through the two numbers before.
            const double less =
                c < 2 ? profile.at(direction, path, c, s - 1) : profile.at(direction, path, c - 1, s);
            profile.set(direction, path, c, s,
                        c < 2 ? 2 * less : less + 2 * (less - profile.at(direction, path, c - 2, s)));
          }
          continue;
        }
        std::vector<Copy> copies;
        for (std::size_t i = 0; i < n; ++i)
          copies.push_back({to + i * (bytes + kGap), from + i * (bytes + kGap), bytes});
        const auto us =
            medians_us(copier, copies, stream, n * bytes <= kShort ? 5 * how.repeats : how.repeats);
        for (std::size_t p = 0; p < std::size(kPaths); ++p) profile.set(direction, kPaths[p], c, s, us[p]);
      }
    }
  }
  return profile;
}

}  // namespace esker::transfer
